from itertools import count
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm._messages import AgentMessage, Flags, MessageType, PayloadType
from pyinfra_ssm._payloads import Acknowledgement
from pyinfra_ssm.emulator.agent_channel import AgentChannel, Arrival


def channel() -> AgentChannel:
    numbers = count(1000)
    return AgentChannel(lambda: UUID(int=next(numbers)), lambda: 0)


def frame(sequence: int) -> AgentMessage:
    return AgentMessage(
        MessageType.INPUT, UUID(int=sequence), b"%d" % sequence, sequence, payload_type=1
    )


def sent(agent: AgentChannel) -> list[AgentMessage]:
    return [AgentMessage.decode(raw) for raw in agent.data_to_send()]


def acked(agent: AgentChannel) -> list[int]:
    return [Acknowledgement.decode(message.payload).sequence for message in sent(agent)]


def deliver(agent: AgentChannel, message: AgentMessage) -> list[int]:
    """Return the numbers of the frames that the agent's handler gets to see."""
    delivered: list[int] = []
    following = message if agent.receive(message) is Arrival.NEXT else None
    while following is not None:
        delivered.append(following.sequence)
        agent.accept(following)
        following = agent.next_kept()
    return delivered


def test_output_is_numbered_from_zero_and_only_the_first_frame_carries_syn() -> None:
    agent = channel()
    agent.send(PayloadType.OUTPUT, b"$ ", now=0)
    agent.send(PayloadType.OUTPUT, b"", now=0)
    agent.send(PayloadType.STDERR, b"no", now=0)
    assert [(m.sequence, m.flags, m.payload_type, m.payload) for m in sent(agent)] == [
        (0, Flags.SYN, PayloadType.OUTPUT, b"$ "),
        (1, Flags.NONE, PayloadType.STDERR, b"no"),
    ]


def test_a_repeated_frame_is_acknowledged_again_but_not_delivered() -> None:
    agent = channel()
    assert deliver(agent, frame(0)) == [0]
    assert deliver(agent, frame(0)) == []
    assert acked(agent) == [0, 0]


def test_early_frames_are_acknowledged_at_once_and_delivered_in_order() -> None:
    agent = channel()
    deliver(agent, frame(0))
    assert deliver(agent, frame(3)) == deliver(agent, frame(2)) == []
    assert acked(agent) == [0, 3, 2]
    assert deliver(agent, frame(1)) == [1, 2, 3]
    assert acked(agent) == [1]


def test_input_is_not_acknowledged_before_its_handler_takes_it() -> None:
    agent = channel()
    assert agent.receive(frame(0)) is Arrival.NEXT
    assert sent(agent) == []
    assert agent.receive(frame(0)) is Arrival.NEXT
    agent.accept(frame(0))
    assert acked(agent) == [0]


@given(st.lists(st.integers(0, 6), max_size=40))
def test_input_is_delivered_once_and_in_order_whatever_the_network_does(
    arrivals: list[int],
) -> None:
    agent = channel()
    delivered = [number for each in arrivals for number in deliver(agent, frame(each))]
    assert delivered == list(range(len(delivered)))
    assert acked(agent) == arrivals


def test_only_the_oldest_unacknowledged_frame_is_sent_again() -> None:
    agent = channel()
    for text in (b"a", b"b", b"c"):
        agent.send(PayloadType.OUTPUT, text, now=0)
    first, second, third = sent(agent)
    agent.tick(now=0.19)
    assert sent(agent) == []
    agent.acknowledged(Acknowledgement.of(second), now=0.2)
    agent.tick(now=0.5)
    assert sent(agent) == [first]
    agent.acknowledged(Acknowledgement.of(first), now=0.6)
    agent.tick(now=2)
    assert sent(agent) == [third]


def test_the_resend_timeout_follows_the_round_trip_up_to_a_second() -> None:
    agent = channel()
    for number in range(30):
        agent.send(PayloadType.OUTPUT, b"x", now=number * 10)
        agent.acknowledged(Acknowledgement.of(sent(agent)[0]), now=number * 10 + 5)
    agent.send(PayloadType.OUTPUT, b"y", now=1000)
    (last,) = sent(agent)
    agent.tick(now=1000.99)
    assert sent(agent) == []
    agent.tick(now=1001.01)
    assert sent(agent) == [last]


def test_a_paused_channel_keeps_output_for_later() -> None:
    agent = channel()
    agent.paused = True
    agent.send(PayloadType.OUTPUT, b"x", now=0)
    agent.tick(now=10)
    assert sent(agent) == []
    agent.paused = False
    agent.tick(now=10)
    assert [message.payload for message in sent(agent)] == [b"x"]


def test_input_and_acknowledgements_end_a_pause() -> None:
    agent = channel()
    agent.paused = True
    agent.receive(frame(0))
    assert not agent.paused
    agent.paused = True
    agent.acknowledged(Acknowledgement(MessageType.OUTPUT, UUID(int=1), 0), now=0)
    assert not agent.paused
