"""A fresh host: a dry run writes nothing, the run does as foretold, the next does nothing."""

from tests.container.conftest import FirstDay
from tests.container.stand_in import StandIn


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


def test_a_dry_run_of_a_converged_host_plans_nothing(host: StandIn) -> None:
    run = host.plan()
    assert run.code == 0, run.log[-4000:]
    assert run.planned == ()
