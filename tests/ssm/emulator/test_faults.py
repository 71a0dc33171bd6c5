import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm.emulator import Faults

probabilities = st.floats(0, 1)


def test_a_change_leaves_the_other_faults_alone() -> None:
    before = Faults(delay_ms=20, loss=0.05)
    assert before.changed({"loss": 0.1}) == Faults(delay_ms=20, loss=0.1)
    assert before.loss == 0.05


def test_an_unknown_fault_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no such fault: lag, los"):
        Faults().changed({"los": 0.1, "lag": 1})


@given(probabilities, probabilities, st.lists(st.text()))
def test_faults_survive_their_json(loss: float, duplication: float, denied: list[str]) -> None:
    faults = Faults(loss=loss, duplication=duplication, denied=tuple(denied))
    assert Faults().changed(faults.to_json()) == faults


def test_a_star_cuts_off_every_instance() -> None:
    assert Faults(not_connected=("*",)).cuts_off("i-1")
    assert Faults(not_connected=("i-1",)).cuts_off("i-1")
    assert not Faults(not_connected=("i-1",)).cuts_off("i-2")
