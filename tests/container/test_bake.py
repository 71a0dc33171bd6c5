"""A host made from the image of a converged one finds everything in its place."""

from tests.container import host as hosts
from tests.container import pyinfra_run
from tests.container.managed import managed
from tests.container.stand_in import StandIn

SERVED = "Ensure tiny-gemma-4 is served and answers"
SMOKE = "Ensure what is served passed the smoke check"
SEAL = "tests/container/deploys/seal.py"


def test_a_host_from_the_image_starts_without_a_build_or_a_download(host: StandIn) -> None:
    first = pyinfra_run.run(host.host, host.data, deploy=SEAL)
    assert first.code == 0, first.log[-4000:]
    assert pyinfra_run.run(host.host, host.data, deploy=SEAL).clean
    image = f"localhost/{host.host.name}:baked"
    host.host.commit(image)
    baked = hosts.boot(host.host.engine, image, f"{host.host.name}-baked")
    try:
        with managed(baked) as (reached, _):
            run = pyinfra_run.run(reached, host.data)
            assert run.code == 0, run.log[-4000:]
            assert set(run.changed) <= {SERVED, SMOKE}
            assert pyinfra_run.run(reached, host.data, "--dry").clean
    finally:
        baked.remove()
        host.host.engine.attempt("rmi", image)
        host.host.restart()  # as EC2 does for the image; the sealed journal needs it
        host.converge()
