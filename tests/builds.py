"""One build as wanted, and a host on which it is installed, whole."""

from typing import Any

from facts.build import FoundBuild, Stamp
from operations.build import GIB, Build, BuildCheck

BUILD = Build(
    version="0.32.0",
    compiled_source="c",
    python_source="p",
    environment={"VLLM_TARGET_DEVICE": "cuda"},
    requirements_lock="cmake==4.4.5\nfastapi==1.0\n",
    build_tools=frozenset({"cmake"}),
    kernels_lock="",
    check=BuildCheck(("_C*.so",), ("vllm._C",)),
    jobs=None,
)
STAMP: Stamp = {
    "inputs": BUILD.inputs("2.12.0", "3.12.3"),
    "outputs": {
        "version": "0.32.0",
        "commit": "c0ffee",
        "wheel_sha256": "",
        "checked": {},
        "seconds": 1.0,
    },
}


def built(**changes: Any) -> FoundBuild:
    """Return what the fact tells of the host; keywords replace parts of that."""
    found: FoundBuild = {
        "stamp": STAMP,
        "running": False,
        "installed": "0.32.0",
        "damaged": [],
        "damaged_count": 0,
        "torch": "2.12.0",
        "python": "3.12.3",
        "cores": 16,
        "memory_bytes": 32 * GIB,
    }
    found.update(changes)  # type: ignore[typeddict-item]  # also by what no host tells
    return found
