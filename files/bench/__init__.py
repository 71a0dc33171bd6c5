"""What measures an OpenAI-compatible server from the host that it runs on.

Copied to the host as it is and run there by its python3 (3.11 or newer): standard library alone,
relative imports alone. `python3 -m bench --help` lists what it does.
"""
