"""A fresh host: a dry run writes nothing, the run does as foretold, the next does nothing."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

from tests.container import pyinfra_run
from tests.container.conftest import FirstDay
from tests.container.stand_in import StandIn

# Over Systems Manager each is a round trip.
MOST_COMMANDS = 80


def test_a_dry_run_on_a_fresh_host_succeeds_and_plans_something(first_day: FirstDay) -> None:
    assert first_day.dry.code == 0, first_day.dry.log[-4000:]
    assert first_day.dry.planned


def test_a_dry_run_on_a_fresh_host_writes_nothing(first_day: FirstDay) -> None:
    assert first_day.written_by_dry_run == {}


def test_the_run_does_what_the_dry_run_foretold(first_day: FirstDay) -> None:
    assert first_day.first.code == 0, first_day.first.log[-4000:]
    assert first_day.first.changed == first_day.dry.planned


def test_the_second_run_changes_nothing(host: StandIn) -> None:
    run = host.converge()
    assert run.code == 0, run.log[-4000:]
    assert run.changed == ()


def test_a_run_without_changes_asks_once_in_at_most_80_remote_commands(
    host: StandIn, tmp_path: Path
) -> None:
    program = host.host.engine.program
    stub, asked = tmp_path / program, tmp_path / "asked"
    stub.write_text(f'#!/bin/sh\necho "$1" >>{asked}\nexec {shutil.which(program)} "$@"\n')
    stub.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    watched = replace(host.host, instance=None, environment=path)
    counts = []
    for flags in ((), ("--dry",)):
        asked.write_text("")
        run = pyinfra_run.run(watched, host.data, *flags)
        assert run.clean, run.log[-4000:]
        counts.append(asked.read_text().split().count("exec"))
    in_run, in_dry_run = counts
    assert in_run == in_dry_run
    assert 0 < in_run <= MOST_COMMANDS


def test_a_dry_run_of_a_converged_host_plans_nothing(host: StandIn) -> None:
    run = host.plan()
    assert run.code == 0, run.log[-4000:]
    assert run.planned == ()
