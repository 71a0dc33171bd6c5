"""Throw bytes at every decoder, guided by coverage: `python -m tests.ssm.fuzz -max_total_time=60`.

Needs atheris (https://github.com/google/atheris), which is not among the test dependencies; the
same properties run under hypothesis with the tests. Arguments are libFuzzer's.
"""

import contextlib
import sys

import atheris  # type: ignore

with atheris.instrument_imports(include=["pyinfra_ssm"]):
    from pyinfra_ssm import _payloads
    from pyinfra_ssm._errors import ProtocolError
    from pyinfra_ssm._messages import AgentMessage
    from pyinfra_ssm.remote.framing import ArmourDecoder, Decoder, FramingError

_PAYLOADS = (
    _payloads.Acknowledgement.decode,
    _payloads.HandshakeRequest.decode,
    _payloads.HandshakeResponse.decode,
    _payloads.HandshakeComplete.decode,
    _payloads.EncryptionChallenge.decode,
    _payloads.ClosingNotice.decode,
    _payloads.decode_flag,
    _payloads.decode_exit_code,
)


def decode(data: bytes) -> None:
    """Decode `data` as everything; only the documented errors may come out."""
    with contextlib.suppress(ProtocolError):
        message = AgentMessage.decode(data)
        if message.encode() != data and b"\0" not in data[4:36]:
            raise AssertionError("a frame does not encode back to its bytes")
    for payload in _PAYLOADS:
        with contextlib.suppress(ProtocolError):
            payload(data)
    for decoder in (Decoder(), ArmourDecoder()):
        with contextlib.suppress(FramingError):
            for at in range(0, len(data), 7):
                decoder.feed(data[at : at + 7])


if __name__ == "__main__":
    atheris.Setup(sys.argv, decode)
    atheris.Fuzz()
