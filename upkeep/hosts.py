"""The kinds of host that a lock must serve: their markers and the wheels that they can install."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from packaging.markers import Marker, default_environment
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

NEWEST_GLIBC = 39  # the minor version of Ubuntu 24.04's


@dataclass(frozen=True)
class Host:
    """Linux with glibc on a machine ("aarch64"), with CPython 3.`python`."""

    machine: str
    python: int

    @cached_property
    def environment(self) -> dict[str, str]:
        """The marker environment."""
        here = {name: str(value) for name, value in default_environment().items()}
        return here | {
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "os_name": "posix",
            "sys_platform": "linux",
            "platform_system": "Linux",
            "platform_machine": self.machine,
            "python_version": f"3.{self.python}",
            "python_full_version": f"3.{self.python}.0",
        }

    @cached_property
    def tags(self) -> frozenset[Tag]:
        """The tags of the wheels that it can install."""
        glibcs = [f"manylinux_2_{minor}" for minor in range(5, NEWEST_GLIBC + 1)]
        names = [*glibcs, "manylinux1", "manylinux2010", "manylinux2014", "linux"]
        platforms = [f"{name}_{self.machine}" for name in names]
        native = cpython_tags((3, self.python), [f"cp3{self.python}"], platforms)
        pure = compatible_tags((3, self.python), f"cp3{self.python}", platforms)
        return frozenset((*native, *pure))

    def needs(self, package: Mapping[str, Any]) -> bool:
        """Tell whether an entry of a pylock.toml applies here."""
        return "marker" not in package or Marker(package["marker"]).evaluate(self.environment)

    def wheel_hashes(self, package: Mapping[str, Any]) -> set[str]:
        """Return the sha256 of each wheel of an entry of a pylock.toml that installs here."""
        return {
            wheel["hashes"]["sha256"]
            for wheel in package.get("wheels", ())
            if parse_wheel_filename(_file_name(wheel["url"]))[3] & self.tags
        }


def _file_name(url: str) -> str:
    return url.rpartition("/")[2].replace("%2B", "+")
