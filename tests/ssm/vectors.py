"""Recorded frames of the real agent and the reference plug-in; see vectors/README.md."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "vectors"


@dataclass(frozen=True)
class Recorded:
    """One websocket message; `ms` counts from the first frame of its file."""

    sender: str
    kind: str
    raw: bytes
    fields: dict[str, Any]
    channel: str
    ms: int


def recorded(name: str) -> list[Recorded]:
    """Return the frames of one file, in the order in which they passed the gateway."""
    lines = (FOLDER / f"{name}.jsonl").read_text().splitlines()
    return [_parse(json.loads(line)) for line in lines]


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def every_binary_frame() -> Iterator[tuple[str, Recorded]]:
    """Yield (file name, frame) for every binary frame on either channel."""
    for name in names():
        for frame in recorded(name):
            if frame.kind == "binary":
                yield name, frame


def _parse(line: dict[str, Any]) -> Recorded:
    raw = bytes.fromhex(line["hex"])
    return Recorded(line["from"], line["kind"], raw, line["fields"], line["channel"], line["ms"])
