"""What EC2 should hold: one validated object from pyinfra's data.

The knobs stand in `group_data/@local.py`, which pyinfra reads for the host `@local` and for no
other; `--data knob=value` overrides one for a run. pyinfra turns such a value into an integer, a
boolean or JSON where it can and leaves a string otherwise, so lists may also come as `a,b`.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pyinfra.api.exceptions import DeployError

# With the tag Name, all that says which instances are ours. Nothing without it is ever touched.
MANAGED_BY = "vllm-g5g"
# Groups that have data of their own: a fleet's name makes a group too, and must be none of them.
_GROUP_DATA = Path(__file__).resolve().parent.parent / "group_data"
GROUPS = frozenset({"inventory", *(path.stem for path in _GROUP_DATA.glob("*.py"))})

State = Literal["running", "stopped", "absent"]
Market = Literal["spot", "on-demand", "spot-then-on-demand"]
Shutdown = Literal["stop", "terminate"]


def _split(value: object) -> object:
    """Return `a,b` as a list; anything that is not a string as it is."""
    if not isinstance(value, str):
        return value
    return [part for part in (piece.strip() for piece in value.split(",")) if part]


SubnetIds = Annotated[
    tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...], BeforeValidator(_split)
]
GroupIds = Annotated[
    tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...], BeforeValidator(_split)
]
Zones = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$")], ...],
    BeforeValidator(_split),
]


class Fleet(BaseModel):
    """The instances that one Name stands for; each knob is explained in group_data/@local.py."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", coerce_numbers_to_str=True, str_strip_whitespace=True
    )

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    count: int = Field(ge=0, le=100)
    state: State
    type: str = Field(pattern=r"^[a-z0-9-]+\.[a-z0-9-]+$")
    market: Market
    rounds: int = Field(ge=1, le=100)
    subnets: SubnetIds
    zones: Zones
    security_groups: GroupIds
    instance_profile: str = Field(pattern=r"^[\w+=,.@-]{1,128}$")
    volume_gib: int = Field(ge=20, le=16384)
    image_parameter: str = Field(pattern=r"^/[\w./{}-]+$")
    image_names: dict[Literal["arm64", "x86_64"], str]
    baked: str | None = Field(pattern=r"^(latest|[0-9a-f]{8,64})$")
    shutdown: Shutdown
    online_within_s: int = Field(ge=60, le=7200)
    replace: bool
    confirm: str | None

    @field_validator("name")
    @classmethod
    def _no_group_of_hosts(cls, name: str) -> str:
        if name in GROUPS:
            raise ValueError(f"is a group already, as are {', '.join(sorted(GROUPS))}")
        return name

    @model_validator(mode="after")
    def _subnets_or_zones(self) -> "Fleet":
        if self.subnets and self.zones:
            raise ValueError("subnets and zones are both set: a subnet already lies in one zone")
        return self

    @property
    def markets(self) -> tuple[Literal["spot", "on-demand"], ...]:
        """The markets to try, in order."""
        if self.market == "spot-then-on-demand":
            return ("spot", "on-demand")
        return (self.market,)

    @classmethod
    def from_data(cls, data: Mapping[str, object], overrides: Collection[str]) -> "Fleet":
        """Return the fleet that pyinfra's data asks for.

        `data` may hold other knobs too (those of `group_data/all.py`); `overrides` are the names
        given by `--data`, each of which has to be a knob of the fleet, or the typo would be
        swallowed. Raises DeployError, in one line that names every bad knob.
        """
        unknown = sorted(set(overrides) - set(cls.model_fields))
        if unknown:
            raise DeployError(
                f"--data {', '.join(unknown)}: not a knob of provision.py; "
                f"there are {', '.join(cls.model_fields)}"
            )
        known = {key: data[key] for key in cls.model_fields if key in data}
        try:
            return cls.model_validate(known)
        except ValidationError as error:
            raise DeployError(_one_line(error)) from error


def _one_line(error: ValidationError) -> str:
    """Return every fault of `error` as `knob: fault (found value)`."""
    faults = []
    for fault in error.errors(include_url=False):
        knob = ".".join(str(part) for part in fault["loc"])
        found = "" if fault["type"] == "missing" else f" (found {fault['input']!r})"
        faults.append(f"{knob}: {fault['msg']}{found}" if knob else fault["msg"])
    return f"{'; '.join(faults)}. Set it in group_data/@local.py or with --data knob=value"
