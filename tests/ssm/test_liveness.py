import pytest

from pyinfra_ssm._liveness import (
    HOST_PATIENCE,
    PAUSED_PATIENCE,
    PING_EVERY,
    SOCKET_PATIENCE,
    Liveness,
    Verdict,
)


def test_a_silent_socket_is_pinged_once_and_not_again_before_its_time() -> None:
    liveness = Liveness(now=0.0)
    assert liveness.verdict(PING_EVERY, unacknowledged=False) is Verdict.FINE
    assert liveness.verdict(PING_EVERY + 1, unacknowledged=False) is Verdict.PING
    assert liveness.verdict(PING_EVERY + 2, unacknowledged=False) is Verdict.FINE


def test_an_answered_ping_owes_nothing() -> None:
    liveness = Liveness(now=0.0)
    liveness.verdict(PING_EVERY + 1, unacknowledged=False)
    liveness.hear(PING_EVERY + 2, from_host=False)
    late = PING_EVERY + 2 + SOCKET_PATIENCE + 1
    assert liveness.verdict(late, unacknowledged=False) is Verdict.FINE


def test_a_socket_that_does_not_answer_a_ping_is_dead() -> None:
    liveness = Liveness(now=0.0)
    pinged = PING_EVERY + 1
    liveness.verdict(pinged, unacknowledged=False)
    assert liveness.verdict(pinged + SOCKET_PATIENCE, unacknowledged=False) is Verdict.FINE
    late = pinged + 2 * SOCKET_PATIENCE
    assert liveness.verdict(late, unacknowledged=False) is Verdict.SOCKET_DEAD


def test_an_idle_socket_owes_nothing_however_long_it_is_silent() -> None:
    liveness = Liveness(now=0.0)
    verdicts = {
        liveness.verdict(float(now), unacknowledged=False) for now in range(int(PING_EVERY))
    }
    assert verdicts == {Verdict.FINE}


def test_a_host_that_acknowledges_nothing_is_dead_though_its_socket_answers() -> None:
    liveness = Liveness(now=0.0)
    now = 0.0
    while now <= HOST_PATIENCE:
        assert liveness.verdict(now, unacknowledged=True) is Verdict.FINE
        now += 5
        liveness.hear(now, from_host=False)
    assert liveness.verdict(now + 5, unacknowledged=True) is Verdict.HOST_DEAD


def test_a_silent_host_is_found_dead_however_often_its_socket_is_replaced() -> None:
    liveness = Liveness(now=0.0)
    now = 0.0
    while (verdict := liveness.verdict(now, unacknowledged=True)) is not Verdict.HOST_DEAD:
        if verdict is Verdict.SOCKET_DEAD:
            liveness.renew(now)  # the service resumes a session whose host is gone
        now += 1.0
        assert now < 2 * HOST_PATIENCE


def test_a_host_has_time_to_answer_on_a_new_socket() -> None:
    liveness = Liveness(now=0.0)
    assert liveness.verdict(0.0, unacknowledged=True) is Verdict.FINE
    awake = 10 * HOST_PATIENCE  # a laptop has slept
    liveness.renew(awake)
    assert liveness.verdict(awake + 10, unacknowledged=True) is Verdict.FINE
    liveness.hear(awake + 10, from_host=True)
    assert liveness.verdict(awake + 25, unacknowledged=True) is Verdict.FINE


@pytest.mark.parametrize("renewed", [False, True])
def test_a_new_socket_starts_anew(renewed: bool) -> None:
    liveness = Liveness(now=0.0)
    assert liveness.verdict(0.0, unacknowledged=True) is Verdict.FINE
    if renewed:
        liveness.renew(SOCKET_PATIENCE + 1)
    verdict = liveness.verdict(SOCKET_PATIENCE + 2, unacknowledged=True)
    assert verdict is (Verdict.FINE if renewed else Verdict.SOCKET_DEAD)


def test_a_host_that_is_known_to_be_away_gets_more_time() -> None:
    liveness = Liveness(now=0.0)
    assert liveness.verdict(0.0, unacknowledged=True, paused=True) is Verdict.FINE
    for now, verdict in (
        (HOST_PATIENCE + 1, Verdict.FINE),
        (PAUSED_PATIENCE + 1, Verdict.HOST_DEAD),
    ):
        liveness.hear(now, from_host=False)
        assert liveness.verdict(now, unacknowledged=True, paused=True) is verdict
