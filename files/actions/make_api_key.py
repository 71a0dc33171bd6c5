"""Make an API key on this host, in a file that only root can read, at no moment otherwise.

Arguments: path, and the generation: a number that whoever wants another key raises.
"""

import os
import secrets
import sys
import tempfile

path, generation = sys.argv[1:]
os.umask(0o077)
directory = os.path.dirname(path)
os.makedirs(directory, exist_ok=True)
descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".api-key-")
with os.fdopen(descriptor, "w") as file:
    file.write(f"VLLM_API_KEY={secrets.token_hex(32)}\n# generation {generation}\n")
os.rename(temporary, path)
