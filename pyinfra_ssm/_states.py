"""The states of a data channel and every step that is allowed between them."""

from enum import Enum, auto

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import PayloadType


class Step(Enum):
    """What may move a channel from one state to the next."""

    REQUEST = auto()
    CHALLENGE = auto()
    COMPLETE = auto()
    DATA = auto()
    CLOSE = auto()


class State(Enum):
    OPENING = auto()  # nothing has come: a shell never shakes hands, other sessions do
    HANDSHAKING = auto()
    RUNNING = auto()
    CLOSED = auto()

    def after(self, step: Step) -> "State":
        """Return the state that `step` leads to, or raise ProtocolError: the peer broke order."""
        state = TRANSITIONS.get((self, step))
        if state is None:
            raise ProtocolError(f"{step.name.lower()} while {self.name.lower()}")
        return state


TRANSITIONS = {
    (State.OPENING, Step.REQUEST): State.HANDSHAKING,
    (State.OPENING, Step.DATA): State.RUNNING,
    (State.OPENING, Step.CLOSE): State.CLOSED,
    (State.HANDSHAKING, Step.CHALLENGE): State.HANDSHAKING,
    (State.HANDSHAKING, Step.COMPLETE): State.RUNNING,
    (State.HANDSHAKING, Step.CLOSE): State.CLOSED,
    (State.RUNNING, Step.DATA): State.RUNNING,
    (State.RUNNING, Step.CLOSE): State.CLOSED,
}

_STEPS: dict[int, Step] = {
    PayloadType.HANDSHAKE_REQUEST: Step.REQUEST,
    PayloadType.ENCRYPTION_CHALLENGE_REQUEST: Step.CHALLENGE,
    PayloadType.HANDSHAKE_COMPLETE: Step.COMPLETE,
}


def step_of(payload_type: int) -> Step:
    """Return which step a stream payload is; what is not part of a handshake is data."""
    return _STEPS.get(payload_type, Step.DATA)
