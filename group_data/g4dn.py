"""EC2 G4dn: x86-64 with T4s, the same compute capability 7.5. Untested: nobody ran it there."""

architectures = ["x86_64"]
