"""pyinfra's inventory of one stand-in, in the group `cpu`.

`VLLM_G5G_STAND_IN` has its address and data as JSON; without it, they are those of `make try`.
An address is @podman/NAME, @docker/NAME, or @ssm/INSTANCE where an emulated Systems Manager is in
front of the container: the deploy does not know the difference.
"""

import json
import os
from pathlib import Path

_TRY = Path(__file__).resolve().parents[2] / ".try" / "stand-in.json"
_given = os.environ.get("VLLM_G5G_STAND_IN")
_stand_in = json.loads(_given if _given is not None else _TRY.read_text())

cpu = [(_stand_in["address"], _stand_in["data"])]
