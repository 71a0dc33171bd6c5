"""A small plan, and a harness that carries it out in no time."""

from pathlib import Path
from typing import Any

from files.bench.harness import Harness
from files.bench.plan import Method, Plan
from tests.bench.fake_server import FakeServer

SMALL = Method(
    contexts=(64, 128),
    outputs=(4,),
    concurrencies=(1, 3),
    concurrency_output=4,
    repeats=2,
)


def ticking() -> Any:
    seconds = iter(range(10_000_000))
    return lambda: float(next(seconds))


def plan_for(server: FakeServer, method: Method = SMALL, **fields: Any) -> Plan:
    return Plan({"url": server.url, "model": "tiny", "timeout": 1e9}, method, **fields)


def harness(server: FakeServer, directory: Path, method: Method = SMALL, **fields: Any) -> Harness:
    plan = plan_for(server, method, **fields)
    return Harness(plan, directory, plan.client(), lambda line: None, ticking())


def by_id(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in run["cells"]}
