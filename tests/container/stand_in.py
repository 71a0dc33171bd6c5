"""What a stand-in converges from: the upstreams' content, and the data that points at it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.container import machine
from tests.container.upstreams import vllm_git
from tests.container.upstreams.served import serve


@dataclass(frozen=True)
class Upstreams:
    """Content on this machine that stands in for what the network would serve."""

    web: Path  # served over HTTP
    repositories: Path  # served over git's protocol

    @contextmanager
    def serve(self, remembered: Path) -> Iterator[dict[str, object]]:
        """Serve all of it while the block lasts; yield the inventory data that points at it."""
        with serve(self.web, self.repositories, remembered) as ports:
            yield {"vllm_repository": f"git://127.0.0.1:{ports.git}/{vllm_git.NAME}"}


def prepare(cache: Path) -> Upstreams:
    """Make what is missing of the upstreams' content under `cache`."""
    web = cache / "upstreams" / "web"
    web.mkdir(parents=True, exist_ok=True)
    return Upstreams(web=web, repositories=vllm_git.ensure(cache, machine.read().pip))
