"""Measure what a host serves, on the host, and keep the report here. Run deploy.py first."""

from pyinfra import host

from desired import measuring, places, stages
from operations import bench, filesystem, smoke
from settings import Settings

settings = Settings.of(host.name, host.data.dict())

filesystem.present(
    name="Ensure the measuring programs are current",
    entries=smoke.program_files(places.PROGRAMS),
)
bench.measured(
    name=f"Ensure a benchmark of what is served is in {settings.bench_reports}/",
    benchmark=measuring.benchmark(settings, host.name),
    served=stages.served_files(settings),
    places=measuring.bench_places(settings),
    always=settings.bench == "always",
)
