"""The signature of a request to open a stream, as the reference plug-in sends it since 1.2.688.

The service was not seen to ask for one: a stream is opened by its token. But there is a permission
for it, ssmmessages:OpenDataChannel, which only a signed request can be held against.
https://github.com/aws/session-manager-plugin/blob/mainline/src/communicator/websocketchannel.go
"""

from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

_SERVICE = "ssmmessages"
_SCHEMES = {"wss": "https", "ws": "http"}


def signature(url: str, credentials: Any, region: str) -> dict[str, str]:
    """Return the headers that sign a GET of `url` with botocore's `credentials`.

    The address that the service gives has a base64 text in its query, unescaped: what is signed is
    its escaped form, with each + taken for a space, as by the plug-in (Go's signer).
    """
    from botocore.auth import SigV4Auth  # slow to import, and seldom needed
    from botocore.awsrequest import AWSRequest

    address = urlsplit(url)
    pairs = parse_qsl(address.query, keep_blank_values=True)
    escaped = address._replace(
        scheme=_SCHEMES[address.scheme], query=urlencode(pairs, quote_via=quote, safe="")
    )
    request = AWSRequest("GET", escaped.geturl())
    SigV4Auth(credentials, _SERVICE, region).add_auth(request)
    return {str(name): str(value) for name, value in request.headers.items()}
