"""AWS on loopback: moto's server, with its untruths mended and faults on demand.

moto lets pass what EC2 refuses, and lacks some calls. `Cloud` stands in front of it as WSGI
middleware, so boto3 speaks to it over HTTP as it does to AWS: it records each call, answers with
a fault where a test asked for one, answers itself what moto cannot, and hands on the rest.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from moto.backends import get_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.ssm.models import Parameter
from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"
ACCOUNT = "123456789012"  # moto's own
WRITES = frozenset({"RunInstances", "StartInstances", "StopInstances", "TerminateInstances"})
ONE_TIME = (
    "You can't stop the Spot Instance '{}' because it is associated with a one-time Spot Instance "
    "request. You can only stop Spot Instances associated with persistent Spot Instance requests."
)


@dataclass(frozen=True)
class Call:
    """One request: the service as the signature names it, the action and its parameters."""

    service: str
    action: str
    params: Mapping[str, Any]


@dataclass
class Fault:
    """Answer `action` with this error, `times` times, where `when` holds of its parameters."""

    action: str
    code: str
    message: str = "told to fail"
    times: int = 1_000_000
    when: Callable[[Mapping[str, Any]], bool] = lambda params: True


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@dataclass
class Cloud:
    """One region of one account. The fields are what a test sets and looks at."""

    calls: list[Call] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    quotas: dict[str, float] = field(default_factory=dict)  # quota code -> vCPUs
    on_demand_usd: dict[str, float] = field(default_factory=dict)  # by type; others unlisted
    pings: dict[str, str] = field(default_factory=dict)  # instance id -> PingStatus
    all_online: bool = True  # running instances without an entry in `pings` are Online
    on_launch: list[Callable[[Any], None]] = field(default_factory=list)  # told moto's instance
    asked: dict[str, Event] = field(default_factory=lambda: defaultdict(Event))  # set by a call
    _tokens: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # -> parameters, answer

    def __post_init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        # The interval is how long close() takes.
        self._thread = Thread(target=self._server.serve_forever, args=[0.01], daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def ec2(self) -> Any:
        """moto's EC2 of this region, for what a test cannot bring about through the API."""
        return get_backend("ec2")[ACCOUNT][REGION]

    def actions(self) -> list[str]:
        return [call.action for call in self.calls]

    def writes(self) -> list[str]:
        """Return the calls that changed instances, in order."""
        return [action for action in self.actions() if action in WRITES]

    def states(self) -> dict[str, list[str]]:
        """Return state -> ids of all instances, whoever's."""
        found: dict[str, list[str]] = {}
        for reservation in self.ec2.reservations.values():
            for instance in reservation.instances:
                found.setdefault(instance._state.name, []).append(instance.id)
        return found

    def instance(self, id: str) -> Any:
        return self.ec2.get_instance(id)

    def put_parameter(self, name: str, value: str) -> None:
        """Make a public parameter; the API refuses names that begin with /aws."""
        parameter: Any = Parameter  # moto's class lacks two members that its own base demands
        get_backend("ssm")[ACCOUNT][REGION]._parameters[name].append(
            parameter(
                account_id=ACCOUNT,
                name=name,
                value=value,
                parameter_type="String",
                description="",
                allowed_pattern=None,
                keyid=None,
                last_modified_date=0,
                version=1,
                data_type="text",
            )
        )

    def register_image(
        self,
        name: str,
        architecture: str = "arm64",
        *,
        owner: str = "amazon",
        state: str = "available",
    ) -> str:
        """Make a machine image; return its id. The API's own call forgets the architecture."""
        made = self.ec2.register_image(name, "")
        made.architecture, made.owner_alias, made.state = architecture, owner, state
        return str(made.id)

    def end(self, id: str, state: str, code: str, message: str) -> None:
        """Put an instance into a state for a reason, as EC2 does by itself."""
        codes = {"shutting-down": 32, "terminated": 48, "stopped": 80, "pending": 0}
        instance = self.instance(id)
        instance._state.name, instance._state.code = state, codes[state]
        instance.state_reason.code, instance.state_reason.message = code, message

    # One HTTP request.

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        call = _read_call(environ, body)
        self.calls.append(call)
        self.asked[call.action].set()
        for fault in self.faults:
            if fault.action == call.action and fault.times and fault.when(call.params):
                fault.times -= 1
                return _error(start_response, call, fault.code, fault.message)
        own = {
            "CreateImage": self._create_image,
            "DescribeInstanceInformation": self._information,
            "GetProducts": self._products,
            "GetServiceQuota": self._quota,
            "RunInstances": self._run,
            "StopInstances": self._stop,
        }.get(call.action, self._hand_on)
        answer: Iterable[bytes] = own(call, environ, start_response)
        return answer

    def _hand_on(self, call: Call, environ: dict[str, Any], start_response: Any) -> Any:
        return self._moto(environ, start_response)

    def _create_image(self, call: Call, environ: dict[str, Any], start_response: Any) -> Any:
        """Make the image with its tags, those of its snapshot too, which moto cannot."""
        tags = _tag_specifications(call.params)
        asked = [{"ResourceType": "image", "Tags": tags["image"]}]
        made = self.ec2.create_image(call.params["InstanceId"], call.params["Name"], "", asked)
        for tag in tags["snapshot"]:
            made.ebs_snapshot.add_tag(tag["Key"], tag["Value"])
        start_response("200 OK", [("Content-Type", "text/xml")])
        return [f"<CreateImageResponse><imageId>{made.id}</imageId></CreateImageResponse>".encode()]

    def _information(self, call: Call, environ: dict[str, Any], start_response: Any) -> Any:
        (wanted,) = call.params["Filters"]
        assert wanted["Key"] == "InstanceIds"
        assert 1 <= len(wanted["Values"]) <= 100, "AWS takes 1 to 100 values in this filter"
        entries = []
        for id in wanted["Values"]:
            running = self.instance(id)._state.name == "running"
            ping = self.pings.get(id, "Online" if self.all_online and running else "")
            if ping:
                entries.append({"InstanceId": id, "PingStatus": ping, "AgentVersion": "3.3.2299.0"})
        return _json(start_response, {"InstanceInformationList": entries})

    def _products(self, call: Call, environ: dict[str, Any], start_response: Any) -> Any:
        fields = {entry["Field"]: entry["Value"] for entry in call.params["Filters"]}
        usd = self.on_demand_usd.get(fields["instanceType"])
        hourly = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd:.10f}"}} if usd else None
        term = {"priceDimensions": {"SKU.TERM.RATE": hourly}}
        product = {"product": {}, "terms": {"OnDemand": {"SKU.TERM": term}}}
        return _json(start_response, {"PriceList": [json.dumps(product)] if hourly else []})

    def _quota(self, call: Call, environ: dict[str, Any], start_response: Any) -> Any:
        code = call.params["QuotaCode"]
        if code not in self.quotas:
            return _error(start_response, call, "NoSuchResourceException", f"no quota {code}")
        return _json(start_response, {"Quota": {"QuotaCode": code, "Value": self.quotas[code]}})

    def _run(self, call: Call, environ: dict[str, Any], start_response: Any) -> Any:
        """Hold a ClientToken for good, as EC2 does; then let moto run the instance."""
        token = call.params.get("ClientToken", "")
        asked = json.dumps(sorted(call.params.items()))
        if token in self._tokens:
            first, answer = self._tokens[token]
            if first != asked:
                return _error(start_response, call, "IdempotentParameterMismatch", "other request")
            start_response("200 OK", [("Content-Type", "text/xml")])
            return [self._with_state_now(answer)]
        before = set(self.ec2.reservations)
        answer = b"".join(self._moto(environ, start_response))
        for reservation in set(self.ec2.reservations) - before:
            for instance in self.ec2.reservations[reservation].instances:
                for hook in self.on_launch:
                    hook(instance)
        if token:
            self._tokens[token] = asked, answer
        return [answer]

    def _with_state_now(self, answer: bytes) -> bytes:
        """Return the first answer with the state that its instance has by now."""
        text = answer.decode()
        id = text.split("<instanceId>")[1].split("</instanceId>")[0]
        state = self.instance(id)._state.name
        head, _, rest = text.partition("<instanceState>")
        old = rest.split("<name>")[1].split("</name>")[0]
        return (
            f"{head}<instanceState>{rest.replace(f'<name>{old}<', f'<name>{state}<', 1)}".encode()
        )

    def _stop(self, call: Call, environ: dict[str, Any], start_response: Any) -> Any:
        for key, id in call.params.items():
            if key.startswith("InstanceId.") and self.instance(id).lifecycle == "spot":
                return _error(start_response, call, "UnsupportedOperation", ONE_TIME.format(id))
        return self._moto(environ, start_response)


def _tag_specifications(params: Mapping[str, str]) -> dict[str, list[dict[str, str]]]:
    """Return resource type -> tags, from the flat parameters of a call."""
    found: dict[str, list[dict[str, str]]] = {}
    for key, kind in params.items():
        if key.startswith("TagSpecification.") and key.endswith(".ResourceType"):
            prefix = key.removesuffix("ResourceType") + "Tag."
            numbers = [
                k.split(".")[-2] for k in params if k.startswith(prefix) and k.endswith(".Key")
            ]
            found[kind] = [
                {"Key": params[f"{prefix}{n}.Key"], "Value": params[f"{prefix}{n}.Value"]}
                for n in numbers
            ]
    return found


def _read_call(environ: Mapping[str, Any], body: bytes) -> Call:
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split("/")
    service = scope[3] if len(scope) > 3 else ""
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return Call(service, target.rpartition(".")[2], json.loads(body or b"{}"))
    params = dict(parse_qsl(body.decode(), keep_blank_values=True))
    return Call(service, params.pop("Action", ""), params)


def _json(start_response: Any, answer: object) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
    return [json.dumps(answer).encode()]


def _error(start_response: Any, call: Call, code: str, message: str) -> list[bytes]:
    status = "503 Slow Down" if code == "RequestLimitExceeded" else "400 Bad Request"
    fault = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    if call.service == "ec2":
        text = f"<Response><Errors>{fault}</Errors><RequestID>r-1</RequestID></Response>"
    elif call.service == "iam":
        text = f"<ErrorResponse>{fault}<RequestId>r-1</RequestId></ErrorResponse>"
    else:
        start_response(status, [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps({"__type": code, "message": message}).encode()]
    start_response(status, [("Content-Type", "text/xml")])
    return [text.encode()]
