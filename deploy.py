"""Bring a host to a patched, source-built vLLM that serves, and prove it. Safe to run again.

Reads from top to bottom as what the host will look like; see DESIGN in README.md for the stages.
"""

from pyinfra import host

import desired
from operations import account, apt, build, filesystem, model, preflight, requirements, source, swap
from settings import Settings

settings = Settings.of(host.name, host.data.dict())

# --- preflight
preflight.host_can_serve(
    name="Ensure the host can serve",
    expected=desired.expected(settings),
    stamp=desired.STAMP,
)

# --- host
apt.packages(name="Ensure the system packages are installed", names=settings.packages)
swap.present(
    name=f"Ensure {settings.swap_gib} GiB of swap where memory is short",
    path="/swapfile",
    size_gib=settings.swap_gib,
    below_gib=settings.swap_below_gib,
)
account.present(
    name=f"Ensure the account {settings.user} exists", user=settings.user, home=desired.STATE
)
filesystem.present(name="Ensure the directories exist", entries=desired.directories())

# --- source
tree = source.prepared(
    name=f"Ensure the tree is vLLM {settings.vllm_version} with our patches",
    source=desired.source(settings),
    tree=desired.TREE,
    python=settings.python,
)

# --- build
requirements.installed(
    name="Ensure the interpreter has what the lock names",
    lock=desired.requirements_lock(settings),
    python=settings.python,
)
built = build.installed(
    name=f"Ensure vLLM {settings.vllm_version} is built from that tree and installed",
    build=desired.build(settings),
    places=desired.build_places(settings),
)

# --- model
checkpoint = model.present(
    name=f"Ensure the checkpoint {settings.model_source} is complete",
    producer=desired.checkpoint(settings),
    directory=desired.checkpoint_directory(settings),
    python=settings.python,
    log=f"{desired.LOGS}/model.log",
)
