"""vLLM: its patched source, proof that this fits the GPU, and the build."""

from pyinfra.api.operation import OperationMeta

from desired import building, places
from operations import attention, build, filesystem, requirements, source
from settings import Settings


def build_from_source(settings: Settings) -> OperationMeta:
    """Bring the tree about, build it and install it; return the operation that built."""
    source.prepared(
        name=f"Ensure the tree is vLLM {settings.vllm_version} with our patches",
        source=building.source(settings),
        tree=places.TREE,
        python=settings.python,
    )
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
    return build.installed(
        name=f"Ensure vLLM {settings.vllm_version} is built from that tree and installed",
        build=building.build(settings),
        places=building.build_places(settings),
    )
