"""EC2 G5g: Graviton2 and a T4G, 16 GB, compute capability 7.5. What differs from all.py: nothing.

all.py's defaults are this hardware's; the file exists so that the group has its place.
"""
