"""Programs that come with this project's own environment."""

import sys
from pathlib import Path

UV = str(Path(sys.executable).with_name("uv"))
