"""AWS Systems Manager on loopback: its API, its data channel and an agent, for tests without AWS.

    with Emulator(Faults(delay_ms=20)) as emulator:
        os.environ.update(emulator.environment)
        ...

What was recorded from the real agent is done as recorded; see the modules for what, and for what
is not known of the real service.
"""

from pyinfra_ssm.emulator.embedded import Emulator
from pyinfra_ssm.emulator.faults import Faults
from pyinfra_ssm.emulator.instances import DEFAULT_ID, Instance

__all__ = ["DEFAULT_ID", "Emulator", "Faults", "Instance"]
