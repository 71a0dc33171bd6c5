"""What each call needs, as AWS's Service Authorization Reference has it."""

import re

from tests.ec2.cloud import ACCOUNT, REGION, Call, Cloud
from tests.ec2.policy import Need


def arn(service: str, resource: str, account: str = ACCOUNT, region: str = REGION) -> str:
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def needs(call: Call, cloud: Cloud) -> list[Need]:
    """Return the authorizations that AWS asks for before it answers this call."""
    action = f"{call.service}:{call.action}"
    match call.action:
        case "RunInstances":
            return [*_run(call), *_tagging(call)]
        case "CreateImage":
            return [*_create_image(call, cloud), *_tagging(call)]
        case "StartInstances" | "StopInstances" | "TerminateInstances":
            return [Need(action, *_instance(id, cloud)) for id in _ids(call)]
        case "GetServiceQuota":
            resource = f"{call.params['ServiceCode']}/{call.params['QuotaCode']}"
            return [Need(action, arn("servicequotas", resource))]
        case "GetParameter":
            return [Need(action, arn("ssm", f"parameter{call.params['Name']}", account=""))]
        case "GetInstanceProfile":
            name = call.params["InstanceProfileName"]
            return [Need(action, arn("iam", f"instance-profile/{name}", region=""))]
        case "GetProducts":
            return [Need(action)]
    assert call.action.startswith("Describe"), f"what does {action} need?"
    return [Need(action)]


def _ids(call: Call) -> list[str]:
    return [value for key, value in call.params.items() if key.startswith("InstanceId.")]


def _instance(id: str, cloud: Cloud) -> tuple[str, dict[str, str]]:
    """Return an instance's ARN and the context that its own tags make."""
    tags = {tag["key"]: tag["value"] for tag in cloud.instance(id).get_tags()}
    return arn("ec2", f"instance/{id}"), {
        f"aws:ResourceTag/{key}": value for key, value in tags.items()
    }


def _tags(call: Call) -> dict[str, dict[str, str]]:
    """Return resource type -> the request's tags for it, as context keys."""
    found: dict[str, dict[str, str]] = {}
    for key, kind in call.params.items():
        if match := re.fullmatch(r"(TagSpecification\.\d+\.)ResourceType", key):
            keys = {k: v for k, v in call.params.items() if k.startswith(match[1] + "Tag.")}
            found[kind] = {
                f"aws:RequestTag/{value}": keys[k.removesuffix("Key") + "Value"]
                for k, value in keys.items()
                if k.endswith(".Key")
            }
    return found


def _made(kind: str) -> str:
    """Return the ARN of a resource that the call makes; images and snapshots have no account."""
    return arn("ec2", f"{kind}/*", account="" if kind in {"image", "snapshot"} else ACCOUNT)


def _run(call: Call) -> list[Need]:
    params, tags = call.params, _tags(call)
    made = ["instance", "volume", "network-interface"]
    if "InstanceMarketOptions.MarketType" in params:
        made.append("spot-instances-request")
    used = [
        arn("ec2", f"image/{params['ImageId']}", account=""),
        arn("ec2", f"subnet/{params['SubnetId']}"),
        arn("ec2", "security-group/sg-0123456789abcdef0"),
    ]
    role = arn("iam", f"role/{params['IamInstanceProfile.Name']}", region="")
    return [
        *(Need("ec2:RunInstances", _made(kind), tags.get(kind, {})) for kind in made),
        *(Need("ec2:RunInstances", resource) for resource in used),
        Need("iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"}),
    ]


def _create_image(call: Call, cloud: Cloud) -> list[Need]:
    tags = _tags(call)
    return [
        Need("ec2:CreateImage", *_instance(call.params["InstanceId"], cloud)),
        Need("ec2:CreateImage", _made("image"), tags["image"]),
        Need("ec2:CreateImage", _made("snapshot"), tags["snapshot"]),
    ]


def _tagging(call: Call) -> list[Need]:
    context = {"ec2:CreateAction": call.action}
    return [
        Need("ec2:CreateTags", _made(kind), context | tags) for kind, tags in _tags(call).items()
    ]
