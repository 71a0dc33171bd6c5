"""A stand-in as a deploy sees it: the container, what it converges from, and the data for both."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.container import machine, pyinfra_run
from tests.container.console import alive
from tests.container.host import Host
from tests.container.pyinfra_run import Run
from tests.container.upstreams import cuda_repository, rustup_archive, vllm_git
from tests.container.upstreams.served import serve


@dataclass(frozen=True)
class StandIn:
    """One container and the inventory data that it is converged with."""

    host: Host
    data: Mapping[str, object] = field(default_factory=dict)

    def run(self, script: str) -> str:
        """Run a shell script as root inside and return what it printed; a failure raises."""
        return self.host.run(script)

    def attempt(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Run a shell script as root inside, whatever comes of it."""
        return self.host.attempt(script)

    def converge(self, *flags: str, **knobs: object) -> Run:
        """Run deploy.py on it with pyinfra's own flags; `knobs` override its data for this run."""
        return pyinfra_run.run(self.host, {**self.data, **knobs}, *flags)

    def plan(self, **knobs: object) -> Run:
        """Ask a dry run what converging would change."""
        return self.converge("--dry", **knobs)

    def going_on(self) -> AbstractContextManager[tuple["subprocess.Popen[str]", Iterator[str]]]:
        """Run deploy.py on it while the block lasts; yields the run and its lines as they come."""
        return pyinfra_run.going_on(self.host, self.data)


@dataclass(frozen=True)
class Upstreams:
    """Content on this machine that stands in for what the network would serve."""

    cuda: Path  # signed packages, to be laid out for an address
    repositories: Path  # git's

    @contextmanager
    def serve(self, folder: Path) -> Iterator[dict[str, object]]:
        """Serve all of it from `folder` while the block lasts.

        Yields the inventory data that points there. The ports are the same again for a later
        block with the same folder, if nobody has taken them since.
        """
        web = folder / "web"
        web.mkdir(parents=True, exist_ok=True)
        with serve(web, self.repositories, folder / "ports.json") as ports:
            cuda = cuda_repository.publish(self.cuda, web, ports.http)
            rustup = rustup_archive.publish(web, ports.http)
            yield {
                **cuda.knobs,
                **rustup.knobs,
                "cuda_toolkit": cuda_repository.TOOLKIT,
                "vllm_repository": f"git://127.0.0.1:{ports.git}/{vllm_git.NAME}",
                # The kernel takes no swap file on a container's overlay.
                "swap_below_gib": 0,
            }


def prepare(cache: Path) -> Upstreams:
    """Make what is missing of the upstreams' content under `cache`."""
    with alive("NVIDIA's apt repository, with the real nvcc"):
        cuda = cuda_repository.ensure(cache)
    with alive("vLLM's git repository, with the released trees"):
        repositories = vllm_git.ensure(cache, machine.read().pip)
    return Upstreams(cuda=cuda, repositories=repositories)
