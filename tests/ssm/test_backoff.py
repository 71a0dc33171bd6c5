from pyinfra_ssm._backoff import FIRST, LONGEST, Backoff


def test_pauses_double_from_none_to_the_longest_until_an_attempt_bears_fruit() -> None:
    backoff = Backoff(chance=lambda: 1.0)
    pauses = [backoff.pause() for _ in range(9)]
    assert pauses[:3] == [0.0, FIRST, 2 * FIRST]
    assert pauses[-1] == LONGEST
    backoff.reset()
    assert backoff.pause() == 0.0


def test_half_of_a_pause_is_left_to_chance() -> None:
    backoff = Backoff(chance=lambda: 0.0)
    assert [backoff.pause() for _ in range(2)] == [0.0, FIRST / 2]
