"""What measures an OpenAI-compatible server from the host that it runs on.

Copied to the host as it is and run there by its python3 (3.11 or newer), with relative imports and
the standard library alone; `bandwidth` is run by the interpreter that has torch. `python3 -m bench
--help` lists the rest.
"""
