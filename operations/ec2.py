"""EC2 instances of one name: running and reached, stopped, or gone.

What was found is handed in, asked once before anything changes, so the plan that a dry run shows
is what the run then does; only waiting looks again. AWS is called from this machine, so what acts
are Python functions and not shell commands.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from desired.fleet import Fleet
from facts.aws import Aws
from facts.ec2 import Instance
from facts.ec2_survey import Survey
from operations.aws_command import Say, aws_command
from operations.ec2_launch import Wish, offers, walk
from operations.ec2_plan import (
    Await,
    Change,
    Launch,
    Planned,
    Reach,
    plan_absent,
    plan_running,
    plan_stopped,
)
from operations.ec2_wait import CLOCK, Clock, until_online, until_state
from operations.steps import Refusal, Step, carry_out

STATES = {"start": "running", "stop": "stopped", "terminate": "terminated"}


@operation()
def running(
    aws: Aws,
    fleet: Fleet,
    found: Sequence[Instance],
    seen: Survey,
    consent: bool,
    clock: Clock = CLOCK,
) -> Generator[PyinfraCommand, None, None]:
    """Have exactly `fleet.count` instances run, and Systems Manager reach them.

    + found: all instances of the name, the ended ones too
    + seen: what AWS has for them
    + consent: whether those that are too many may be terminated
    """
    launcher = Launcher(aws, fleet, seen, tuple(entry.id for entry in found), clock)
    steps = [
        _step(entry, aws, clock, launcher) for entry in plan_running(found, seen, fleet, consent)
    ]
    yield from carry_out(steps, settled=f"{fleet.count} called {fleet.name} run")


@operation()
def stopped(
    aws: Aws, found: Sequence[Instance], clock: Clock = CLOCK
) -> Generator[PyinfraCommand, None, None]:
    """Stop those of the instances found that run."""
    steps = [_step(entry, aws, clock) for entry in plan_stopped(found)]
    yield from carry_out(steps, settled="none of them runs")


@operation()
def absent(
    aws: Aws, fleet: Fleet, found: Sequence[Instance], consent: bool, clock: Clock = CLOCK
) -> Generator[PyinfraCommand, None, None]:
    """Terminate all the instances found.

    + consent: whether the loss of what is on them was confirmed
    """
    steps = [_step(entry, aws, clock) for entry in plan_absent(found, fleet.name, consent)]
    yield from carry_out(steps, settled=f"no instance is called {fleet.name}")


@dataclass(frozen=True)
class Launcher:
    """Launches instances of a fleet, and remembers which in this run."""

    aws: Aws
    fleet: Fleet
    seen: Survey
    known: tuple[str, ...]  # ids of all instances of the name, before
    clock: Clock
    made: list[str] = field(default_factory=list)

    def launch(self, deed: Launch, say: Say) -> None:
        """Launch as many as the deed says, one after the other, and wait until all of them run."""
        for _ in range(deed.count):
            tries = offers(deed.markets, deed.places, self.seen.spot_usd, self.fleet.rounds)
            known = [*self.known, *self.made]
            self.made.append(walk(self.aws, self._wish(), tries, known, say, self.clock.sleep))
            say(f"{self.made[-1]} is launched")
        until_state(self.aws, self.made, "running", self.clock, say)

    def reach(self, deed: Reach, say: Say) -> None:
        """Wait until Systems Manager reaches the instances of the deed and those just made."""
        ids = [*deed.ids, *self.made]
        until_online(self.aws, ids, self.fleet.online_within_s, self.clock, say)

    def _wish(self) -> Wish:
        return Wish(
            name=self.fleet.name,
            type=self.fleet.type,
            image=self.seen.image,
            security_groups=self.fleet.security_groups,
            instance_profile=self.fleet.instance_profile,
            volume_gib=self.fleet.volume_gib,
            shutdown=self.fleet.shutdown,
        )


def _step(
    entry: Planned | Refusal, aws: Aws, clock: Clock, launcher: Launcher | None = None
) -> Step | Refusal:
    """Return an entry of a plan with the function that carries it out."""
    match entry:
        case Refusal():
            return entry
        case Planned(reason, Await(ids, state)):
            return Step(reason, aws_command("wait", partial(until_state, aws, ids, state, clock)))
        case Planned(reason, Change(verb, ids)):
            return Step(reason, aws_command(verb, partial(_change, aws, verb, ids, clock)))
        case Planned(reason, Launch() as deed) if launcher:
            return Step(reason, aws_command("launch", partial(launcher.launch, deed)))
        case Planned(reason, Reach() as deed) if launcher:
            return Step(reason, aws_command("reach", partial(launcher.reach, deed)))
    raise TypeError(f"nothing carries out {entry}")


def _change(aws: Aws, verb: str, ids: Sequence[str], clock: Clock, say: Say) -> None:
    """Start, stop or terminate, and wait until that is done."""
    with aws.asking(f"{verb} {', '.join(ids)}"):
        match verb:
            case "start":
                aws.ec2.start_instances(InstanceIds=list(ids))
            case "stop":
                aws.ec2.stop_instances(InstanceIds=list(ids))
            case "terminate":
                aws.ec2.terminate_instances(InstanceIds=list(ids))
    until_state(aws, ids, STATES[verb], clock, say)
