"""Whether the socket, and the host behind it, still answer; pure: the time is an argument."""

from enum import Enum, auto

# Seconds between pings on a silent socket. Address translation forgets a connection after some
# minutes; the plug-in's five are too many for some.
PING_EVERY = 60.0
# Seconds without a byte after which a socket that owes us one is taken for dead.
SOCKET_PATIENCE = 20.0
# Seconds without a frame of the host, while it owes us an acknowledgement, after which the host is:
# the service keeps the socket open for an agent that is gone, as after a reboot.
HOST_PATIENCE = 45.0
# Of that, what is left on a new socket at least. Less than a socket's own, or a silent host would
# be laid to one socket after the other, for as long as the service resumes its session.
NEW_SOCKET_PATIENCE = 15.0
# The same while the service says that the agent has lost its own connection. It tries five times to
# get it back, each of which takes 20 s where nothing answers, and then no more:
# https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/config/config.go
PAUSED_PATIENCE = 120.0


class Verdict(Enum):
    FINE = auto()
    PING = auto()  # it is time to send one; it counts as sent
    SOCKET_DEAD = auto()
    HOST_DEAD = auto()


class Liveness:
    """What was heard last, and since when something is owed."""

    def __init__(self, now: float) -> None:
        self._heard = self._heard_host = self._pinged = self._owed_since = now

    def renew(self, now: float) -> None:
        """Note that there is a new socket, on which what is owed is asked for again."""
        self._heard = now
        self._heard_host = max(self._heard_host, now - HOST_PATIENCE + NEW_SOCKET_PATIENCE)

    def hear(self, now: float, from_host: bool) -> None:
        """Note that something came: a frame, or (not from the host) the answer to a ping."""
        self._heard = now
        if from_host:
            self._heard_host = now

    def verdict(self, now: float, unacknowledged: bool, paused: bool = False) -> Verdict:
        """Return what to do; to be asked every few seconds. `paused`: by the service."""
        if not unacknowledged and self._pinged <= self._heard:
            self._owed_since = now
        if not paused and now - max(self._owed_since, self._heard) > SOCKET_PATIENCE:
            return Verdict.SOCKET_DEAD
        patience = PAUSED_PATIENCE if paused else HOST_PATIENCE
        if unacknowledged and now - max(self._owed_since, self._heard_host) > patience:
            return Verdict.HOST_DEAD
        if now - max(self._heard, self._pinged) > PING_EVERY:
            self._pinged = now
            return Verdict.PING
        return Verdict.FINE
