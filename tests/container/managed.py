"""A stand-in as a managed instance: an emulated Systems Manager in front of its container."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyinfra_ssm.emulator import DEFAULT_ID, Emulator, Faults, Instance
from tests.container.host import Host


@contextmanager
def managed(host: Host, faults: Faults | None = None) -> Iterator[tuple[Host, Emulator]]:
    """Yield the host as pyinfra reaches it over Systems Manager, and what emulates that."""
    # What runs a container needs a runtime; what runs a command in it does not.
    instance = Instance(container=host.name, engine=host.engine.program)
    with Emulator(faults or Faults(), [instance]) as emulator:
        reached = replace(host, instance=DEFAULT_ID, environment=emulator.environment)
        yield reached, emulator
