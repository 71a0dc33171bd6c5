"""Bring a host to a patched, source-built vLLM that serves, and prove it. Safe to run again.

Read from top to bottom, this is what the host will look like. The values come from group_data/ by
way of settings.py; desired/stages.py turns them into what each stage should bring about.
"""

from pyinfra import host, logger

from desired import building, places, server_unit, stages
from operations import (
    account,
    apt,
    attention,
    build,
    cuda_repository,
    cuda_toolkit,
    driver,
    filesystem,
    model,
    preflight,
    prewarm,
    readiness,
    requirements,
    runtime,
    rust,
    secret,
    service,
    smoke,
    source,
    spot,
    swap,
)
from runtimes import others
from settings import Settings

settings = Settings.of(host.name, host.data.dict())
for warning in stages.warnings(settings):
    host.log(warning, log_func=logger.warning)

# --- preflight: a host that can never serve is refused here, in the dry run too
preflight.host_can_serve(
    name="Ensure the host can serve",
    expected=stages.expected(settings),
    stamp=places.STAMP,
)

# --- host
if toolkit := building.cuda_toolkit(settings):
    # Before any other use of apt: two keys for one repository stop all of it.
    cuda_repository.present(
        name="Ensure there is one apt source for NVIDIA's repository",
        repository=building.cuda_repository(settings),
        toolkit=toolkit,
    )
apt.packages(name="Ensure the system packages are installed", names=stages.packages(settings))
swap.present(
    name=f"Ensure {settings.swap_gib} GiB of swap where memory is short",
    path="/swapfile",
    size_gib=settings.swap_gib,
    below_gib=settings.swap_below_gib,
)
account.present(
    name=f"Ensure the account {settings.user} exists", user=settings.user, home=places.STATE
)
filesystem.present(name="Ensure the directories exist", entries=stages.directories())

# --- cuda
if toolkit:
    driver.held(name="Ensure the driver stays at the installed version")
    cuda_toolkit.present(name=f"Ensure CUDA {toolkit.release} is installed", toolkit=toolkit)

# --- rust
if rustup := building.rustup(settings):
    rust.present(
        name=f"Ensure Rust {settings.version.rust_toolchain} is installed",
        home=places.RUST,
        toolchain=settings.version.rust_toolchain,
        rustup=rustup,
    )

# --- source
source.prepared(
    name=f"Ensure the tree is vLLM {settings.vllm_version} with our patches",
    source=building.source(settings),
    tree=places.TREE,
    python=settings.python,
)

# --- build
if attention_check := building.attention_check(settings):
    # Minutes now, instead of an hour of compiling, to learn that the tree needs another patch.
    filesystem.present(
        name="Ensure the attention probe is current",
        entries=attention.program_files(places.PROGRAMS),
    )
    attention.fits(
        name="Ensure the attention kernels fit the GPU",
        check=attention_check,
        directory=places.PROGRAMS,
        record=places.ATTENTION_RECORD,
    )
requirements.installed(
    name="Ensure the interpreter has what the lock names",
    lock=building.requirements_lock(settings),
    python=settings.python,
)
if extra := building.runtime_lock(settings):
    requirements.installed(
        name=f"Ensure the interpreter has what {settings.runtime} serves with",
        lock=extra,
        python=settings.python,
    )
built = build.installed(
    name=f"Ensure vLLM {settings.vllm_version} is built from that tree and installed",
    build=building.build(settings),
    places=building.build_places(settings),
)

# --- secret: before the model, whose download may need the token
token_source = stages.token_source(settings)
filesystem.present(
    name="Ensure the token's unit is current", entries=secret.token_entries(token_source)
)
if token_source:
    secret.token_fetched(name="Ensure the token is on the host", source=token_source)
else:
    secret.token_unit_gone(name="Ensure the token's unit is gone")

# --- model
checkpoint = model.present(
    name=f"Ensure the checkpoint {settings.model_source} is complete",
    producer=stages.checkpoint(settings),
    directory=stages.checkpoint_directory(settings),
    python=settings.python,
    user=settings.user,
    log=f"{places.LOGS}/model.log",
)

# --- service
unit = stages.service(settings)
if unit.api_key_generation is not None:
    secret.api_key(
        name="Ensure the server's API key is private",
        path=server_unit.API_KEY_PATH,
        generation=unit.api_key_generation,
    )
runtime.others_gone(name=f"Ensure no server but {unit.runtime.unit}", units=others(unit.runtime))
filesystem.present(
    name="Ensure the measuring programs are current",
    entries=smoke.program_files(places.PROGRAMS),
)
filesystem.present(
    name="Ensure the server's unit and environment are current",
    entries=[
        *server_unit.entries(unit),
        readiness.unit_file(stages.stopwatch(settings)),
        *prewarm.entries(stages.prewarm(settings)),
        *spot.entries(stages.spot_drained(settings)),
    ],
)
prewarm.arranged(
    name=f"Ensure prewarming is {'on' if settings.prewarm else 'off'}",
    wanted=stages.prewarm(settings),
)
readiness.timed(name="Ensure each start of the server is timed", watch=stages.stopwatch(settings))
service.running(
    name=f"Ensure {settings.served_name} is served and answers",
    wanted=server_unit.wanted(unit),
    served={"the build": built, "the checkpoint": checkpoint},
)

spot.watched(
    name=f"Ensure spot interruptions are {'heeded' if settings.watch_spot else 'not watched'}",
    server_unit=stages.spot_drained(settings),
)

# --- smoke
smoke.checked(
    name="Ensure what is served passed the smoke check",
    check=stages.smoke_check(settings),
    served=stages.served_files(settings),
    texts=server_unit.texts(unit),
    directory=places.PROGRAMS,
    record=places.SMOKE_RECORD,
    always=settings.smoke == "always",
    after=[built, checkpoint],
)
