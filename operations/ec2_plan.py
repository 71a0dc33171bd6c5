"""What to do about instances of one name: pure planning, from what was found.

Nothing here asks AWS or knows of pyinfra's hosts; `operations/ec2.py` carries the plans out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from desired.fleet import Fleet
from facts.ec2 import Instance, Market, Volume, living
from facts.ec2_image import misfit
from facts.ec2_network import Place, judge_groups, unusable, usable
from facts.ec2_quota import counts, shortfall
from facts.ec2_survey import Survey
from operations.steps import Refusal

LOST = "with all that was built and downloaded on it"


@dataclass(frozen=True)
class Launch:
    """Launch this many instances, in one of the markets, in one of the places."""

    count: int
    markets: tuple[Market, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Change:
    """Have EC2 do this with these instances, and wait until it is done."""

    verb: Literal["start", "stop", "terminate"]
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Await:
    """Wait until EC2 has brought these instances from a passing state to a lasting one."""

    ids: tuple[str, ...]
    state: Literal["running", "stopped"]


@dataclass(frozen=True)
class Reach:
    """Wait until Systems Manager reaches these instances and those launched in this run."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Planned:
    """A deed and why it is needed."""

    reason: str
    deed: Launch | Change | Await | Reach


Plan = list[Planned | Refusal]


def consent_given(fleet: Fleet, *, yes: bool) -> bool:
    """Return whether instances may be terminated: their name was repeated, or -y with absent."""
    return fleet.confirm == fleet.name or (yes and fleet.state == "absent")


def differences(instance: Instance, volume: Volume | None, fleet: Fleet, source: str) -> list[str]:
    """Return what of an instance differs from the knobs, of what is settled at its launch."""
    pairs = [
        ("type", instance.type, fleet.type),
        ("image", instance.source or source, source),
        ("instance_profile", instance.profile, fleet.instance_profile),
    ]
    if fleet.subnets and instance.subnet not in fleet.subnets:
        pairs.append(("subnet", instance.subnet, " or ".join(fleet.subnets)))
    if fleet.zones and instance.zone not in fleet.zones:
        pairs.append(("zone", instance.zone, " or ".join(fleet.zones)))
    if fleet.security_groups:
        has, want = sorted(instance.groups), sorted(fleet.security_groups)
        pairs.append(("security_groups", ", ".join(has), ", ".join(want)))
    if instance.market not in fleet.markets:
        pairs.append(("market", instance.market, " or ".join(fleet.markets)))
    if volume and volume.gib < fleet.volume_gib:
        pairs.append(("volume_gib", str(volume.gib), str(fleet.volume_gib)))
    if volume and not volume.encrypted:
        pairs.append(("root volume", "not encrypted", "encrypted"))
    return [f"{knob} is {has}, wanted {want}" for knob, has, want in pairs if has != want]


def changes(found: Sequence[Instance], seen: Survey, fleet: Fleet) -> dict[str, str]:
    """Return id -> how a living instance differs from the knobs, of those that do."""
    texts = {
        entry.id: differences(entry, seen.volumes.get(entry.root_volume), fleet, seen.image.source)
        for entry in living(found)
    }
    return {id: "; ".join(text) for id, text in texts.items() if text}


def plan_running(found: Sequence[Instance], seen: Survey, fleet: Fleet, consent: bool) -> Plan:
    """Return what makes exactly `fleet.count` instances run.

    With `fleet.replace`, a new instance is launched for each that differs from the knobs; those
    are terminated once the new ones are reached. `consent` allows to terminate the surplus, the
    youngest first.
    """
    alive = sorted(living(found), key=_rank)
    kept, surplus = alive[: fleet.count], alive[fleet.count :]
    if surplus and not consent:
        return [Refusal(_too_many(alive, fleet))]
    changed = changes(kept, seen, fleet)
    old = [entry for entry in kept if fleet.replace and entry.id in changed]
    stay = [entry for entry in kept if entry not in old]
    plan = _wake(stay)
    if missing := fleet.count - len(stay):
        plan.append(_launch(missing, len(stay), seen, fleet))
    if lacking := missing + len(set(_ids(stay)) - seen.online):
        why = f"Systems Manager does not reach {lacking} of {fleet.count} yet; wait for it"
        plan.append(Planned(f"{why}, at most {fleet.online_within_s} s", Reach(_ids(stay))))
    for entry in old:
        why = f"{entry.id}: {changed[entry.id]}; terminate it, {LOST}"
        plan.append(Planned(why, Change("terminate", (entry.id,))))
    if surplus:
        why = f"{_names(surplus)}: more than {fleet.count}; terminate, {LOST}"
        plan.append(Planned(why, Change("terminate", _ids(surplus))))
    return refusals(plan) or plan


def refusals(plan: Plan) -> Plan:
    """Return the refusals of a plan alone: with one of them, nothing of it is done."""
    return [entry for entry in plan if isinstance(entry, Refusal)]


def _wake(stay: Sequence[Instance]) -> Plan:
    """Return what brings these instances to running."""
    plan: Plan = []
    if stopping := [entry for entry in stay if entry.state == "stopping"]:
        plan.append(Planned(f"{_names(stopping)}: wait", Await(_ids(stopping), "stopped")))
    if idle := [entry for entry in stay if entry.state in {"stopped", "stopping"}]:
        plan.append(Planned(f"{_names(idle)}: start", Change("start", _ids(idle))))
    return plan


def _launch(missing: int, stay: int, seen: Survey, fleet: Fleet) -> Planned | Refusal:
    """Return the launch of so many instances, or everything that stands against it."""
    vcpus = missing * seen.kind.vcpus
    short = {market: _short(market, vcpus, seen, fleet.type) for market in fleet.markets}
    markets = tuple(market for market in fleet.markets if not short[market])
    places = usable(seen.places, seen.offering)
    vpcs = {place.vpc for place in seen.places}
    faults = [
        "" if markets else "; ".join(short.values()),
        misfit(seen.image, seen.kind.architecture, fleet.volume_gib),
        "" if places else unusable(seen.places, seen.offering, fleet.type),
        *judge_groups(seen.groups, fleet.security_groups, vpcs).faults,
        *seen.profile.faults,
    ]
    if any(faults):
        against = ". ".join(fault for fault in faults if fault)
        return Refusal(f"cannot launch {missing} {fleet.type} called {fleet.name}: {against}.")
    why = f"{stay} of {fleet.count} instances are there as wanted; launch {missing} {fleet.type}"
    why += f" ({' then '.join(markets)}), {vcpus} vCPUs, from {seen.image.id}"
    return Planned(why, Launch(missing, markets, tuple(places)))


def _short(market: Market, vcpus: int, seen: Survey, type_: str) -> str:
    quota = seen.quotas.get(market)
    return shortfall(quota, vcpus) if quota and counts(type_) else ""


def plan_stopped(found: Sequence[Instance]) -> Plan:
    """Return what stops all that run; refused where one of them is a one-time spot instance."""
    awake = [entry for entry in found if entry.state in {"pending", "running"}]
    if spot := [entry for entry in awake if entry.market == "spot"]:
        return [
            Refusal(
                f"{_names(spot)}: a one-time spot instance cannot be stopped, only terminated, "
                f'{LOST}. Set state = "absent" for that, or leave it running.'
            )
        ]
    plan: Plan = []
    if pending := [entry for entry in awake if entry.state == "pending"]:
        plan.append(Planned(f"{_names(pending)}: wait", Await(_ids(pending), "running")))
    if awake:
        plan.append(Planned(f"{_names(awake)}: stop", Change("stop", _ids(awake))))
    return plan


def plan_absent(found: Sequence[Instance], name: str, consent: bool) -> Plan:
    """Return what terminates all instances of the name, which wants consent."""
    alive = living(found)
    if not alive:
        return []
    if not consent:
        return [
            Refusal(
                f"{_names(alive)}: terminating deletes the root volume, {LOST}. "
                f"Confirm with --data confirm={name}, or with -y."
            )
        ]
    return [Planned(f"{_names(alive)}: terminate, {LOST}", Change("terminate", _ids(alive)))]


def _rank(instance: Instance) -> tuple[bool, float, str]:
    """Order by what to keep: what runs before what is stopped, then the oldest."""
    awake = instance.state in {"pending", "running"}
    return not awake, instance.launched.timestamp(), instance.id


def _too_many(alive: Sequence[Instance], fleet: Fleet) -> str:
    last = len(alive) - fleet.count
    return (
        f"{len(alive)} instances are called {fleet.name}, count is {fleet.count}: {_names(alive)}. "
        f"Set count, or terminate the last {last} of these with --data confirm={fleet.name}."
    )


def _ids(entries: Iterable[Instance]) -> tuple[str, ...]:
    return tuple(entry.id for entry in entries)


def _names(entries: Iterable[Instance]) -> str:
    return ", ".join(f"{entry.id} ({entry.state})" for entry in entries)
