"""The host data that the connector reads, each with its default and its reason."""

from typing import TypedDict

from pyinfra.connectors.base import DataMeta


class ConnectorData(TypedDict):
    ssm_target: str | None
    ssm_region: str | None
    ssm_profile: str | None
    ssm_transport: str
    ssm_document: str
    ssm_bulk_document: str
    ssm_python: str
    ssm_payload_size: int
    ssm_prefetch: bool
    ssm_return_limit: int
    ssm_secrets_in_history: bool


KNOBS: dict[str, DataMeta] = {
    "ssm_target": DataMeta("Instance id; taken from the host's name"),
    "ssm_region": DataMeta("AWS region; None is what boto3 finds"),
    "ssm_profile": DataMeta("Profile of ~/.aws/config; None is what boto3 finds"),
    "ssm_transport": DataMeta("auto, session or run-command", "auto"),
    "ssm_document": DataMeta(
        "Session document that runs its parameter `command` on a terminal",
        "AWS-StartInteractiveCommand",
    ),
    "ssm_bulk_document": DataMeta(
        "Session document for large downloads; empty for none", "AWS-StartNonInteractiveCommand"
    ),
    "ssm_python": DataMeta("Python 3.7 or later on the host", "python3"),
    "ssm_payload_size": DataMeta(
        "Bytes of input in one frame; 0 is 1024, or more once more is seen to pass", 0
    ),
    "ssm_prefetch": DataMeta("Ask for the facts of the last run all at once", True),
    "ssm_return_limit": DataMeta(
        "Seconds to wait, in a run, for a host to come back after a reboot", 300
    ),
    "ssm_secrets_in_history": DataMeta(
        "Let secrets go through Run Command, whose history keeps them", False
    ),
}
