"""The command line of the emulator, and its life as a process."""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from pyinfra_ssm.emulator.account import Account
from pyinfra_ssm.emulator.documents import SessionDocument
from pyinfra_ssm.emulator.faults import Faults
from pyinfra_ssm.emulator.instances import DEFAULT_ID, Instance
from pyinfra_ssm.emulator.namespace import run_in_namespaces
from pyinfra_ssm.emulator.server import Server

_EPILOG = """\
--instance-id, --tag and --engine belong to the --container or --this-machine before them. Once
ready, one line of JSON is printed: {"endpoint_url": ..., "instances": [...]}. Point boto3 at it
with AWS_ENDPOINT_URL_SSM, AWS_ENDPOINT_URL_EC2 and AWS_ENDPOINT_URL_KMS; any credentials do.
"""


class _AddInstance(argparse.Action):
    """Begin an instance."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        number = len(namespace.instances)
        ident = DEFAULT_ID if number == 0 else f"i-{number:017x}"
        container = values if isinstance(values, str) else None
        namespace.instances.append({"instance_id": ident, "container": container, "tags": {}})


class _DescribeInstance(argparse.Action):
    """Describe the instance that was begun last."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if not namespace.instances:
            parser.error(f"{option_string} needs a --container or --this-machine before it")
        instance = namespace.instances[-1]
        if self.dest != "tag":
            instance[self.dest] = values
            return
        key, equals, value = str(values).partition("=")
        if not equals:
            parser.error(f"--tag wants KEY=VALUE, not {values}")
        instance["tags"][key] = value


def parser() -> argparse.ArgumentParser:
    """Return the parser; instances come out as dictionaries, for Instance.from_json."""
    arguments = argparse.ArgumentParser(
        prog="python -m pyinfra_ssm.emulator",
        description="Emulate AWS Systems Manager on loopback, for hosts that are containers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # main() looks for --namespace as it is written
    )
    arguments.set_defaults(instances=[])
    begin: dict[str, Any] = {"dest": "instances", "action": _AddInstance}
    arguments.add_argument("--container", metavar="NAME", help="a running container", **begin)
    arguments.add_argument("--this-machine", nargs=0, help="commands run here", **begin)
    arguments.add_argument(
        "--namespace",
        action="store_true",
        help="give this machine's instances processes, mounts and a host name of their own",
    )
    describe: dict[str, Any] = {"action": _DescribeInstance, "default": argparse.SUPPRESS}
    arguments.add_argument("--instance-id", metavar="I-...", **describe)
    arguments.add_argument("--tag", metavar="KEY=VALUE", **describe)
    arguments.add_argument("--engine", metavar="COMMAND", help="podman or docker", **describe)
    arguments.add_argument("--port", type=int, default=0, help="0, the default, is any free one")
    arguments.add_argument("--delay-ms", type=float, help="one-way delay of the line")
    arguments.add_argument("--faults", type=json.loads, default={}, help="JSON; see faults.py")
    arguments.add_argument(
        "--config-from-stdin",
        action="store_true",
        help="read one line of JSON (instances, faults, documents); end when stdin ends",
    )
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args(argv)
    if arguments.namespace:
        if any(instance["container"] for instance in arguments.instances):
            parser().error("--namespace is for --this-machine; a container has namespaces already")
        return run_in_namespaces([each for each in argv if each != "--namespace"])
    config: dict[str, Any] = {"instances": arguments.instances, "faults": arguments.faults}
    if arguments.delay_ms is not None:
        config["faults"] = {**arguments.faults, "delay_ms": arguments.delay_ms}
    watched = sys.stdin if arguments.config_from_stdin else None
    if watched is not None:
        config = json.loads(watched.readline())
    try:
        asyncio.run(_serve(config, arguments.port, watched))
    except (ValueError, RuntimeError, OSError) as error:
        print(f"pyinfra_ssm.emulator: cannot start: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(config: Mapping[str, Any], port: int, watched: TextIO | None) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if watched is not None:
        loop.add_reader(watched, _stop_at_end, watched, stop)
    documents = {k: SessionDocument.from_json(v) for k, v in config.get("documents", {}).items()}
    account = Account(Faults().changed(config.get("faults", {})), documents)
    instances = [Instance.from_json(each) for each in config["instances"]] or [Instance()]
    server = Server(account)
    try:
        endpoint_url = await server.start(port)
        await account.add(instances, endpoint_url)
        ready = {"endpoint_url": endpoint_url, "instances": list(account.hosts)}
        print(json.dumps(ready), flush=True)
        await stop.wait()
    finally:
        await server.stop()


def _stop_at_end(watched: TextIO, stop: asyncio.Event) -> None:
    if not os.read(watched.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(watched)
        stop.set()
