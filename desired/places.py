"""Where things lie on a host."""

from operations import programs

ROOT = "/opt/vllm-g5g"
TREE = f"{ROOT}/src"
STATE = "/var/lib/vllm-g5g"
STAMP = f"{STATE}/build.json"
LOGS = "/var/log/vllm-g5g"
CONFIGURATION = "/etc/vllm-g5g"
RUST = f"{ROOT}/rust"
PROGRAMS = programs.PROGRAMS
SMOKE_RECORD = f"{STATE}/smoke.json"
ATTENTION_RECORD = f"{STATE}/attention.json"
READINESS_RECORD = f"{STATE}/readiness.json"
PREWARM_RECORD = f"{STATE}/prewarm.json"
