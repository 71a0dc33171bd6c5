"""EC2 G5g: Graviton2 and a T4G, 16 GB, compute capability 7.5. What differs from all.py."""

# A volume made from a snapshot fetches each block when it is first touched, and AWS advises to read
# all of it in parallel [source: EBS User Guide, "Initialize Amazon EBS volumes"]. A first start
# alone read at 9 to 21 MB/s [field]; what this makes of it is untested.
prewarm = True
