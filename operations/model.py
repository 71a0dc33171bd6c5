"""The checkpoint that is served: complete, verified, and the one that was asked for."""

import hashlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from facts.model import Checkpoint, FoundCheckpoint
from facts.script import FILES
from failures.known import DOWNLOADING, GENERAL
from operations.answers import ask
from operations.jobs import Job
from operations.steps import Step, carry_out

UNIT = "vllm-model.service"
# Root does no more in there than to hand files over and end what it started as the user; the user
# has no privilege at all. Left out on purpose: MemoryDenyWriteExecute= (torch compiles as it
# trains) and ProtectProc= (root without CAP_SYS_PTRACE would not see what is left to end).
HARDENING = (
    (
        "CapabilityBoundingSet",
        "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_KILL CAP_SETGID CAP_SETUID",
    ),
    ("NoNewPrivileges", "yes"),
    ("ProtectSystem", "strict"),
    ("ProtectHome", "yes"),
    ("PrivateTmp", "yes"),
    ("PrivateDevices", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectControlGroups", "yes"),
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK"),
    ("LockPersonality", "yes"),
    ("KeyringMode", "private"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallFilter", "@system-service"),
    ("SystemCallErrorNumber", "EPERM"),
)


@dataclass(frozen=True)
class Producer:
    """A program that writes a checkpoint, and the name of what it writes."""

    identity: str
    program: Path
    arguments: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()  # of the unit that it runs in


def trained() -> Producer:
    """Return the producer of the tiny Gemma 4, trained on the host in seconds."""
    program = FILES / "model" / "train_tiny.py"
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    return Producer(f"tiny Gemma 4 {digest[:12]}", program)


def downloaded(
    repository: str, revision: str, token_file: str | None, environment: Mapping[str, str]
) -> Producer:
    """Return the producer of a checkpoint of the model hub.

    `token_file` is a root-only EnvironmentFile with HF_TOKEN, which systemd reads for this unit
    alone; None for a checkpoint that anybody may have.
    """
    properties = [("Environment", f"{name}={value}") for name, value in environment.items()]
    if token_file is not None:
        # A core dump holds the environment, and with it the token.
        properties += [("EnvironmentFile", token_file), ("LimitCORE", "0")]
    return Producer(
        f"{repository}@{revision}",
        FILES / "model" / "download.py",
        (repository, revision),
        tuple(properties),
    )


def plan(
    found: FoundCheckpoint | None,
    producer: Producer,
    directory: str,
    python: str,
    user: str,
    log: str,
) -> list[Step]:
    """Return the one step that puts the checkpoint in its place."""
    faults = ["is missing"] if found is None else _faults(found, producer)
    if not faults:
        return []
    given = {
        "directory": directory,
        "identity": producer.identity,
        "python": python,
        "user": user,
        "producer": producer.program.read_text(),
        "arguments": list(producer.arguments),
    }
    job = _job(producer, directory, python, log)
    return [Step(f"{directory} {'; '.join(faults)}", job.command(given))]


def _job(producer: Producer, directory: str, python: str, log: str) -> Job:
    return Job(
        unit=UNIT,
        description=f"the checkpoint {producer.identity}",
        python=python,
        program=FILES / "model" / "place.py",
        work=f"{directory}.job",
        log=log,
        failures=(*DOWNLOADING, *GENERAL),
        properties={
            **dict(HARDENING),
            "ReadWritePaths": str(PurePosixPath(directory).parent),
            **dict(producer.properties),
        },
    )


@operation()
def present(
    producer: Producer, directory: str, python: str, user: str, log: str
) -> Generator[PyinfraCommand, None, None]:
    """Make the directory hold exactly this checkpoint; a broken file is made again.

    Weights of many GB are read again only where their size or time changed.

    + producer: what writes the checkpoint
    + directory: where it lies, root's and readable by all; its partial download lies beside it
    + python: absolute path of the interpreter that runs the producer
    + user: the account that the producer runs as
    + log: absolute path of the producer's log
    """
    found = ask(Checkpoint, directory=directory)
    settled = f"{directory} is {producer.identity}"
    yield from carry_out(plan(found, producer, directory, python, user, log), settled=settled)


def _faults(found: FoundCheckpoint, producer: Producer) -> list[str]:
    if found["identity"] != producer.identity:
        return [f"holds {found['identity']}, wanted {producer.identity}"]
    if found["fault_count"]:
        return [f"has {found['fault_count']} damaged files: {', '.join(found['faults'])}"]
    return []
