"""Waiting for instances: until they are in a state, and until Systems Manager reaches them."""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from facts.aws import THROTTLED, Aws, AwsError
from facts.ec2 import Instance, agents, by_id, online
from facts.ec2_diagnosis import causes, surroundings
from operations.aws_command import Say

EVERY_S = 5.0
TELL_EVERY_S = 30.0
# Stopping takes a minute or two, with a GPU sometimes five; EC2 forces it after that [field].
SETTLE_WITHIN_S = 900.0


@dataclass(frozen=True)
class Clock:
    """The time in seconds, from any start, and how to let it pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


CLOCK = Clock()


def poll(look: Callable[[], str], within_s: float, clock: Clock, say: Say) -> str:
    """Look until nothing is left to wait for; return what is left when the time is up.

    `look` returns what is still awaited, in words, or "" when all is well. Each change of it, and
    every half minute without one, is said with the time.
    """
    start = clock.now()
    told, told_at = "", start
    while left := _unless_throttled(look):
        now = clock.now()
        if now - start >= within_s:
            return left
        if left != told or now - told_at >= TELL_EVERY_S:
            say(f"{left} ({now - start:.0f} s of {within_s:.0f} s)")
            told, told_at = left, now
        clock.sleep(EVERY_S)
    return ""


def _unless_throttled(look: Callable[[], str]) -> str:
    """Look; that AWS has no time for the question is no end to waiting."""
    try:
        return look()
    except AwsError as error:
        if error.code not in THROTTLED:
            raise
        return f"AWS answers {error.code}"


def until_state(aws: Aws, ids: Collection[str], state: str, clock: Clock, say: Say) -> None:
    """Wait until all these instances are in `state`: running, stopped or terminated."""

    def look() -> str:
        seen = by_id(aws, ids)
        # EC2 forgets a terminated instance after about an hour.
        gone = "terminated" if state == "terminated" else "not listed yet"
        states = {id: seen[id].state if id in seen else gone for id in ids}
        if state == "running":
            _none_ended(seen.values(), aws.region)
        return ", ".join(f"{id} is {found}" for id, found in states.items() if found != state)

    if left := poll(look, SETTLE_WITHIN_S, clock, say):
        raise AwsError(
            f"[{aws.region}] cannot bring instances to {state}: after {SETTLE_WITHIN_S:.0f} s "
            f"{left}. Look at them in the EC2 console, then run again."
        )


def _none_ended(seen: Iterable[Instance], region: str) -> None:
    """Raise AwsError if one that should run has ended, with EC2's reason."""
    for instance in seen:
        if instance.state in {"shutting-down", "terminated"}:
            raise AwsError(ended(instance, region))


# What to do about the reasons that EC2 gives for an end nobody asked for.
REMEDIES = {
    "Client.InternalError": "Most often the key of the encrypted volume: allow its use",
    "Client.UserInitiatedShutdown": "Somebody terminated it",
    "Client.VolumeLimitExceeded": "Ask for more gp3 storage in Service Quotas, or delete volumes",
    "Server.InsufficientInstanceCapacity": "Run again: other zones are walked then",
    "Server.SpotInstanceShutdown": 'Spot took it back: run again, or set market = "on-demand"',
    "Server.SpotInstanceTermination": 'Spot took it back: run again, or set market = "on-demand"',
}


def ended(instance: Instance, region: str) -> str:
    """Return one line on an instance that ended without being asked to."""
    reason = instance.reason or "EC2 gives no reason"
    remedy = REMEDIES.get(reason.partition(":")[0], "Mend that, then run again")
    return f"[{region}] {instance.id} ({instance.name}) has ended: {reason}. {remedy}."


def until_online(aws: Aws, ids: Collection[str], within_s: float, clock: Clock, say: Say) -> None:
    """Wait until all these instances run and Systems Manager reaches them.

    Raises AwsError if one of them ends meanwhile, or, with a diagnosis of each, at the limit.
    """

    def look() -> str:
        seen = by_id(aws, ids)
        _none_ended(seen.values(), aws.region)
        reached = online(aws, seen.values())
        states = {id: seen[id].state if id in seen else "not listed yet" for id in sorted(ids)}
        return ", ".join(
            f"{id} is {state}" if state != "running" else f"{id} runs, its agent is not online yet"
            for id, state in states.items()
            if id not in reached
        )

    if left := poll(look, within_s, clock, say):
        raise AwsError(
            f"[{aws.region}] cannot reach instances over Systems Manager after {within_s:.0f} s: "
            f"{diagnosis(aws, ids) or left}."
        )


def diagnosis(aws: Aws, ids: Collection[str]) -> str:
    """Return, for each of these that runs and is not online, the likely causes."""
    running = [entry for entry in by_id(aws, ids).values() if entry.state == "running"]
    known = agents(aws, [entry.id for entry in running]) if running else {}
    lines = []
    for entry in running:
        agent = known.get(entry.id)
        if agent is None or agent.ping != "Online":
            why = causes(entry, agent, surroundings(aws, entry))
            lines.append(f"{entry.id}: {'; '.join(why)}")
    return ". ".join(lines)
