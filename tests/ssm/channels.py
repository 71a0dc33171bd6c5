"""Channels at a known point, and what they have to send."""

from uuid import UUID, uuid4

from pyinfra_ssm._channel import Channel
from pyinfra_ssm._messages import AgentMessage, MessageType
from pyinfra_ssm._payloads import Acknowledgement
from tests.ssm.agent_end import output

CLIENT = UUID(int=7)


def new_channel() -> Channel:
    channel = Channel(CLIENT, uuid4)
    channel.connected("TOKEN", now=0.0)
    channel.data_to_send()
    return channel


def running_channel() -> Channel:
    channel = new_channel()
    channel.receive(output(0, b"# ").encode(), now=0.0)
    channel.data_to_send()
    return channel


def frames(channel: Channel) -> list[AgentMessage]:
    return [AgentMessage.decode(raw) for raw in channel.data_to_send() if isinstance(raw, bytes)]


def sent_input(channel: Channel) -> list[AgentMessage]:
    return [frame for frame in frames(channel) if frame.message_type == MessageType.INPUT]


def acknowledge(channel: Channel, frame: AgentMessage, now: float) -> list[object]:
    return [*channel.receive(Acknowledgement.of(frame).frame(uuid4(), 0).encode(), now)]
