"""Bring a host to a patched, source-built vLLM that serves, and prove it. Safe to run again.

Read from top to bottom, this is what the host will look like; tasks/ has each part, one call for
each managed thing. The values come from group_data/ by way of settings.py, and desired/ turns them
into what should be.
"""

from pyinfra import host, logger, state

from desired import places, server_unit, stages
from operations import preflight, smoke
from settings import Settings
from tasks import machine, serving, vllm

# With -y pyinfra would foretell nothing: refuse nothing before a change, ask no facts all at once.
state.check_for_changes = True

settings = Settings.of(host.name, host.data.dict())
for warning in stages.warnings(settings):
    host.log(warning, log_func=logger.warning)

# A host that can never serve is refused here, in the dry run too.
preflight.host_can_serve(
    name="Ensure the host can serve",
    expected=stages.expected(settings),
    stamp=places.STAMP,
)
# Packages, swap, account, directories; CUDA, never its driver; Rust.
machine.prepare(settings)
# The tree at its tag with our patches, proof that it fits the GPU, the lock, the build.
built = vllm.build_from_source(settings)
# The hub's token, and the checkpoint.
checkpoint = serving.fetch_checkpoint(settings)
# The API key, the units, and a server that answers; restarted only if it runs from anything else.
serving.serve(settings, built, checkpoint)
# Memory bandwidth and tokens a second, on record with the digest of what they tested.
smoke.checked(
    name="Ensure what is served passed the smoke check",
    check=stages.smoke_check(settings),
    served=stages.served_files(settings),
    texts=server_unit.texts(stages.service(settings)),
    directory=places.PROGRAMS,
    record=places.SMOKE_RECORD,
    always=settings.smoke == "always",
    after=[built, checkpoint],
)
