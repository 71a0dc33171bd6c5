"""What is served, and the server: the hub's token, the checkpoint, the units around the server."""

from pyinfra.api.operation import OperationMeta

from desired import places, server_unit, stages
from operations import filesystem, model, prewarm, readiness, runtime, secret, service, smoke, spot
from runtimes import others
from settings import Settings


def fetch_checkpoint(settings: Settings) -> OperationMeta:
    """Bring the checkpoint about, with the hub's token if it takes one; return its operation."""
    token_source = stages.token_source(settings)
    filesystem.present(
        name="Ensure the token's unit is current", entries=secret.token_entries(token_source)
    )
    if token_source:
        secret.token_fetched(name="Ensure the token is on the host", source=token_source)
    else:
        secret.token_unit_gone(name="Ensure the token's unit is gone")
    return model.present(
        name=f"Ensure the checkpoint {settings.model_source} is complete",
        producer=stages.checkpoint(settings),
        directory=stages.checkpoint_directory(settings),
        python=settings.python,
        user=settings.user,
        log=f"{places.LOGS}/model.log",
    )


def serve(settings: Settings, built: OperationMeta, checkpoint: OperationMeta) -> None:
    """Have the server run as it is to be, from this build and checkpoint, and answer."""
    unit = stages.service(settings)
    if unit.api_key_generation is not None:
        secret.api_key(
            name="Ensure the server's API key is private",
            path=server_unit.API_KEY_PATH,
            generation=unit.api_key_generation,
        )
    runtime.others_gone(
        name=f"Ensure no server but {unit.runtime.unit}", units=others(unit.runtime)
    )
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
    readiness.timed(
        name="Ensure each start of the server is timed", watch=stages.stopwatch(settings)
    )
    service.running(
        name=f"Ensure {settings.served_name} is served and answers",
        wanted=server_unit.wanted(unit),
        served={"the build": built, "the checkpoint": checkpoint},
    )
    spot.watched(
        name=f"Ensure spot interruptions are {'heeded' if settings.watch_spot else 'not watched'}",
        server_unit=stages.spot_drained(settings),
    )
