"""A container of its own, with what the stages host, cuda and rust converge it from."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.container import engine as engines
from tests.container import host as hosts
from tests.container import image, machine, pyinfra_run
from tests.container.host import CACHE, TEST_PREFIX, Host
from tests.container.pyinfra_run import Run
from tests.container.upstreams import cuda_repository, rustup_archive
from tests.container.upstreams.static_http import StaticServer

DEPLOY = "tests/container/deploys/prerequisites.py"
# On a folder of this machine: the kernel takes no swap file on a container's overlay.
SWAP_FILE = f"{machine.PIP_CACHE}/vllm-g5g-test-swap"
PACKAGES = ["g++", "libnuma1"]


@dataclass(frozen=True)
class Bench:
    """One host, and the data under which it is converged. `web` is the folder that is served."""

    host: Host
    web: Path
    data: Mapping[str, object]

    def dry_run(self, **data: object) -> Run:
        """Foretell what a run would change, with some data replaced."""
        return self._run("--dry", **data)

    def run(self, **data: object) -> Run:
        """Converge, with some data replaced."""
        return self._run(**data)

    def _run(self, *flags: str, **data: object) -> Run:
        return pyinfra_run.run(self.host.address, {**self.data, **data}, *flags, deploy=DEPLOY)


@contextmanager
def bench(web: Path) -> Iterator[Bench]:
    """Boot a fresh host, serve the upstreams from the folder `web`, and remove both at the end."""
    engine, image_name = image.ensure(engines.find(), CACHE)
    host = hosts.boot(engine, image_name, f"{TEST_PREFIX}prerequisites")
    try:
        with StaticServer(web, 0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            port = server.server_address[1]
            cuda = cuda_repository.publish(cuda_repository.ensure(CACHE), web, port)
            rustup = rustup_archive.publish(web, port)
            yield Bench(host, web, {**_data(), **cuda.knobs, **rustup.knobs})
            server.shutdown()
    finally:
        host.attempt(f"swapoff {SWAP_FILE}; rm -f {SWAP_FILE}")
        host.remove()


def _data() -> dict[str, object]:
    return {
        "packages": PACKAGES,
        "cuda_toolkit": cuda_repository.TOOLKIT,
        "rust_toolchain": "1.95",
        "swap_file": SWAP_FILE,
        "swap_below_gib": 1024,
    }
