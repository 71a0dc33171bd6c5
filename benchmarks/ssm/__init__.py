"""Speed of the SSM connector against the emulated agent, as targets that are met or missed."""
