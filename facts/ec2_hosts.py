"""Which of our EC2 instances pyinfra can work on, which not and why, and what they cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from facts.aws import Aws
from facts.ec2 import Agent, Instance, agents, family_letters, instances
from facts.ec2_price import Prices, cost_so_far

# Letters of the families of EC2's "accelerated computing" category: GPUs and other chips.
OTHER_CHIPS = ("g", "gr", "p", "inf", "trn", "vt", "dl", "f")


@dataclass(frozen=True)
class Listing:
    """What was found: the hosts to work on, and the rest with a reason each."""

    region: str
    ready: tuple[Instance, ...]
    skipped: tuple[tuple[Instance, str], ...]


def select(region: str, found: Sequence[Instance], known: Mapping[str, Agent]) -> Listing:
    """Split `found` into instances that Systems Manager reaches and others with the reason."""
    reasons = [(instance, unfit(instance, known.get(instance.id))) for instance in found]
    return Listing(
        region,
        ready=tuple(instance for instance, reason in reasons if not reason),
        skipped=tuple((instance, reason) for instance, reason in reasons if reason),
    )


def unfit(instance: Instance, agent: Agent | None) -> str:
    """Return why pyinfra cannot work on this instance now; empty if it can."""
    if instance.state != "running":
        return f"{instance.state}: {instance.reason}" if instance.reason else instance.state
    if agent is None:
        return "unknown to Systems Manager: still booting, or without role, route or agent"
    if agent.ping != "Online":
        return f"its agent is {agent.ping}, not Online"
    return ""


def accelerator(type_: str) -> str:
    """Return the group of hardware that an instance type belongs to: its family, or cpu."""
    family = type_.partition(".")[0]
    return family if family_letters(type_) in OTHER_CHIPS else "cpu"


def listing(aws: Aws) -> Listing:
    """Ask AWS for our instances in this region, and which of them Systems Manager reaches."""
    found = instances(aws)
    running = [instance.id for instance in found if instance.state == "running"]
    return select(aws.region, found, agents(aws, running) if running else {})


def describe(instance: Instance, known: Prices, now: datetime) -> str:
    """Return one line on a running instance, with its age and what it cost since its start."""
    spent = cost_so_far(known, instance, now)
    money = "? USD" if spent is None else f"{spent:.2f} USD"
    words = (instance.name, instance.type, instance.market, instance.zone)
    return f"{' '.join(words)}, up {age(now - instance.launched)}, {money}"


def age(span: timedelta) -> str:
    """Return a span as its two largest units: `3 d 4 h`, `4 h 10 min`, `0 min`."""
    minutes = max(int(span.total_seconds()) // 60, 0)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def nothing_ready(listed: Listing) -> str:
    """Return what was looked for, what was found, and what to do about an empty inventory."""
    if not listed.skipped:
        return (
            f"[{listed.region}] no instance here bears our tag ManagedBy. Make one with "
            "`pyinfra @local provision.py`, or set AWS_DEFAULT_REGION and AWS_PROFILE to its own."
        )
    why = "; ".join(f"{instance.id} is {reason}" for instance, reason in listed.skipped)
    return (
        f"[{listed.region}] none of {len(listed.skipped)} instances can be worked on: {why}. "
        "`pyinfra @local provision.py` starts them and says why one is not online."
    )
