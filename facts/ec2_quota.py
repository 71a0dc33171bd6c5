"""vCPU quotas for G and VT instances: what is allowed, what runs, and whether more fits."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from facts.aws import DENIED, Aws, AwsError
from facts.ec2 import PAGE, Market, family_letters

# AWS's codes and names of the two quotas, as Service Quotas shows them.
QUOTAS: dict[Market, tuple[str, str]] = {
    "on-demand": ("L-DB2E81BA", "Running On-Demand G and VT instances"),
    "spot": ("L-3819A6DF", "All G and VT Spot Instance Requests"),
}
FAMILIES = ("g", "gr", "vt")


@dataclass(frozen=True)
class Quota:
    """One market's quota, in vCPUs."""

    market: Market
    limit: int | None  # None: not readable
    used: int

    @property
    def label(self) -> str:
        code, name = QUOTAS[self.market]
        return f'"{name}" ({code})'

    def __str__(self) -> str:
        allowed = "unknown" if self.limit is None else str(self.limit)
        return f"{self.label}: {self.used} of {allowed} vCPUs in use"


def counts(type_: str) -> bool:
    """Return whether an instance type counts against these quotas."""
    return family_letters(type_) in FAMILIES


def shortfall(quota: Quota, vcpus: int) -> str:
    """Return why `vcpus` more do not fit and what to ask for; empty if they fit or nobody knows."""
    wanted = quota.used + vcpus
    if quota.limit is None or wanted <= quota.limit:
        return ""
    return (
        f"the quota {quota.label} allows {quota.limit} vCPUs, {quota.used} are in use and "
        f"{vcpus} more are needed: ask for at least {wanted} in Service Quotas"
    )


def quotas(aws: Aws, markets: Collection[Market]) -> tuple[dict[Market, Quota], list[str]]:
    """Return each market's quota with its use, and warnings about what may not be read."""
    warnings = []
    try:
        used = vcpus_in_use(aws)
    except AwsError as error:
        if error.code not in DENIED:
            raise
        return {}, [str(error)]
    answers: dict[Market, Quota] = {}
    for market in markets:
        try:
            limit: int | None = _limit(aws, market)
        except AwsError as error:
            if error.code not in DENIED | {"NoSuchResourceException"}:  # not in every region
                raise
            limit = None
            warnings.append(str(error))
        answers[market] = Quota(market, limit, used[market])
    return answers, warnings


def _limit(aws: Aws, market: Market) -> int:
    code, name = QUOTAS[market]
    with aws.asking(f'read the quota "{name}"'):
        answer = aws.quotas.get_service_quota(ServiceCode="ec2", QuotaCode=code)
    return int(answer["Quota"]["Value"])


def vcpus_in_use(aws: Aws) -> Counter[Market]:
    """Return the vCPUs that count against each quota now, of anybody's instances.

    A spot request counts from when it is open until it is closed [AWS documentation].
    """
    taken = _running(aws)
    taken.update(_open_requests(aws))
    sizes = vcpus(aws, {type_ for _, type_ in taken})
    used: Counter[Market] = Counter()
    for (market, type_), number in taken.items():
        used[market] += number * sizes[type_]
    return used


def _running(aws: Aws) -> Counter[tuple[Market, str]]:
    taken: Counter[tuple[Market, str]] = Counter()
    with aws.asking("count the instances that run"):
        pages = aws.ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}],
            PaginationConfig={"PageSize": PAGE},
        )
        for page in pages:
            for raw in (raw for entry in page["Reservations"] for raw in entry["Instances"]):
                market: Market = "spot" if raw.get("InstanceLifecycle") == "spot" else "on-demand"
                taken[market, raw["InstanceType"]] += 1
    return Counter({key: number for key, number in taken.items() if counts(key[1])})


def _open_requests(aws: Aws) -> Counter[tuple[Market, str]]:
    taken: Counter[tuple[Market, str]] = Counter()
    with aws.asking("count the open spot requests"):
        pages = aws.ec2.get_paginator("describe_spot_instance_requests").paginate(
            Filters=[{"Name": "state", "Values": ["open"]}]
        )
        for page in pages:
            for raw in page["SpotInstanceRequests"]:
                type_ = raw.get("LaunchSpecification", {}).get("InstanceType", "")
                if counts(type_):
                    taken["spot", type_] += 1
    return taken


def vcpus(aws: Aws, types: Collection[str]) -> dict[str, int]:
    """Return the vCPUs of each of these instance types."""
    return {name: kind.vcpus for name, kind in kinds(aws, types).items()}


@dataclass(frozen=True)
class Kind:
    """What an instance type is, as far as we need it."""

    vcpus: int
    architecture: str  # arm64 or x86_64


def kinds(aws: Aws, types: Collection[str]) -> dict[str, Kind]:
    """Return what each of these instance types is."""
    if not types:
        return {}
    with aws.asking(f"look up {', '.join(sorted(types))}"):
        pages = aws.ec2.get_paginator("describe_instance_types").paginate(
            InstanceTypes=sorted(types)  # type: ignore[arg-type]  # any string, the API says
        )
        return {
            raw["InstanceType"]: Kind(
                vcpus=raw["VCpuInfo"]["DefaultVCpus"],
                # x86 types list i386 too; the 64-bit one is what images are made for.
                architecture="arm64"
                if "arm64" in raw["ProcessorInfo"]["SupportedArchitectures"]
                else "x86_64",
            )
            for page in pages
            for raw in page["InstanceTypes"]
        }
