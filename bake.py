"""Make a machine image of a host that serves: `pyinfra inventory.py bake.py --limit HOST`.

The host must be converged and have passed its smoke check; it is refused otherwise. The service is
stopped, what must not travel is removed, and EC2 restarts the instance while it copies the disk.
Afterwards `pyinfra inventory.py deploy.py` brings the host itself back to serving. Where an image
of this very build is there already, nothing is done.
"""

from pyinfra import host, inventory
from pyinfra.api.exceptions import DeployError

from desired import building, places, server_unit, stages
from facts.aws import Aws
from facts.build import VllmBuild
from facts.ec2_image import baked_images
from facts.smoke import Smoke
from operations import bake, build, filesystem
from settings import Settings

if len(inventory.get_active_hosts()) > 1:
    raise DeployError("bake one host at a time: pick it with --limit, by its name or its @ssm/ id")

settings = Settings.of(host.name, host.data.dict())
build_places = building.build_places(settings)
found = host.get_fact(
    VllmBuild, python=build_places.python, stamp=build_places.stamp, unit=build.UNIT
)
tested = host.get_fact(Smoke, record=places.SMOKE_RECORD, files=stages.served_files(settings))
proof = bake.Proof(
    build=building.build(settings),
    places=build_places,
    check=stages.smoke_check(settings),
    texts=server_unit.texts(stages.service(settings)),
    programs=places.PROGRAMS,
)
stamp = bake.proved_stamp(host.name, found, tested, proof)
digest = bake.build_digest(stamp)

aws = Aws(host.data.get("ssm_region"))
instance = bake.instance_of(aws, host.name)
images = baked_images(aws)
for line in bake.tell_images(images, digest):
    host.log(line)
same = [image for image in images if image.build == digest and image.state in bake.GOOD]

if not same:
    filesystem.present(
        name="Ensure the host tells what it was built from",
        entries=[
            bake.info_file(
                f"{places.CONFIGURATION}/build-info.json", digest, stamp, tested, instance.image
            )
        ],
    )
    bake.sealed(
        name="Ensure nothing of the host itself would travel",
        service=server_unit.UNIT,
    )
bake.image(
    name=f"Ensure an image of build {digest[:12]} exists",
    aws=aws,
    source=bake.Source(instance.id, digest, stamp["outputs"]["version"]),
    images=same,
)
