"""The stages of deploy.py, by area: what a host needs, vLLM itself, what it serves and how."""
