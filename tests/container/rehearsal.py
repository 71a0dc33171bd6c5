"""`make try`: converge a container on this machine, twice, and ask what it serves a question.

It ends well only if the second run changed nothing and the answer is language. Everything that it
leaves is one container and the folder .try; `make clean-try` removes both.
"""

import argparse
import json
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from files.bench import smoke
from files.bench.text import unexpected
from group_data import cpu
from tests.container import engine as engines
from tests.container import host as hosts
from tests.container import image, pyinfra_run, stand_in
from tests.container.console import Stages, StepFailed, table
from tests.container.host import CACHE, ROOT, TRY_NAME, Host
from tests.container.managed import managed
from tests.container.pyinfra_run import Run
from tests.container.stand_in import Upstreams

FOLDER = ROOT / ".try"
PORT = 8000
SMOKE_RECORD = "/var/lib/vllm-g5g/smoke.json"
REPLY_SECONDS = 60


@dataclass(frozen=True)
class Rehearsal:
    """Which container is converged, where on loopback its server listens, and its folder."""

    name: str = TRY_NAME
    port: int = PORT

    @property
    def folder(self) -> Path:
        """Where its logs and figures go: .try, or a folder in there for one beside it."""
        return FOLDER if self.name == TRY_NAME else FOLDER / self.name


def main(arguments: Sequence[str]) -> int:
    """Rehearse, or remove what a rehearsal left; return the exit code."""
    parser = argparse.ArgumentParser(prog="make try", description=__doc__)
    parser.add_argument("--remove", action="store_true", help="remove the container and .try")
    parser.add_argument("--port", type=int, default=PORT, help="where vLLM listens on loopback")
    parser.add_argument("--name", default=TRY_NAME, help="another container, beside that of others")
    given = parser.parse_args(arguments)
    chosen = Rehearsal(given.name, given.port)
    try:
        return remove(chosen) if given.remove else rehearse(chosen)
    except StepFailed as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nInterrupted. `make try` goes on from here, `make clean-try` removes what is there."
        )
        return 130


def remove(chosen: Rehearsal) -> int:
    """Remove the container and the folder of a rehearsal; the caches stay."""
    Host(engines.find(), chosen.name).remove()
    shutil.rmtree(chosen.folder, ignore_errors=True)
    folder = chosen.folder.relative_to(ROOT)
    print(f"Removed the container {chosen.name} and {folder}. {CACHE.name} has the caches.")
    return 0


def rehearse(chosen: Rehearsal) -> int:
    """Set up, converge twice, ask, and report. Return 0 only if all of it is as it should be."""
    stages = Stages()
    host, upstreams = set_up(chosen, stages)
    first, second = converge_twice(chosen, host, upstreams, stages)
    with stages.stage("question", f"Asking it: {cpu.question}"):
        answer = ask(f"http://127.0.0.1:{chosen.port}", cpu.question)
    complaints = judge(second, answer)
    summary = summarise(stages, first, second, answer, smoke_figures(host), complaints)
    (chosen.folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(report(summary, host, chosen))
    print(table({**stages.seconds, "in all": sum(stages.seconds.values())}))
    print(f"\nThe slowest operations of the first run\n{table(slowest(first))}")
    return 1 if complaints else 0


def set_up(chosen: Rehearsal, stages: Stages) -> tuple[Host, Upstreams]:
    """Return the booted container and what it is converged from."""
    engine = engines.find()
    refuse_taken_port(chosen.port, hosts.find(engine, chosen.name))
    with stages.stage("image", "Building the stand-in's image, unless it is cached"):
        engine, image_name = image.ensure(engine, CACHE)
    with stages.stage("upstreams", "Making the upstreams' stand-ins, unless they are cached"):
        upstreams = stand_in.prepare(CACHE)
    with stages.stage("boot", f"Booting {chosen.name} with systemd ({engine})"):
        host = hosts.find(engine, chosen.name, image_name)
        host = host or hosts.boot(engine, image_name, chosen.name)
    return host, upstreams


def converge_twice(
    chosen: Rehearsal, host: Host, upstreams: Upstreams, stages: Stages
) -> tuple[Run, Run]:
    """Return what the two runs came to; their logs lie in the rehearsal's folder."""
    folder = chosen.folder
    with upstreams.serve(folder / "upstreams") as served, managed(host) as (reached, _):
        data = {**served, "port": chosen.port}
        _remember(folder, host, data)
        with stages.stage("converge", f"Converging {reached.address} with deploy.py"):
            first = _converge(reached, data, folder / "converge.log")
        with stages.stage("second run", "Converging it again: nothing may change"):
            second = _converge(reached, data, folder / "second-run.log")
    return first, second


def refuse_taken_port(port: int, host: Host | None) -> None:
    """Raise StepFailed where someone else listens on the port that the stand-in is to serve on."""
    if host is not None:
        state = host.attempt("systemctl is-active vllm.service").stdout.strip()
        if state in ("active", "activating", "deactivating"):
            return  # it is the stand-in's own
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StepFailed(
                f"cannot serve on 127.0.0.1:{port}: {error.strerror}. Nothing was started. Stop "
                f"what listens there (`ss -ltnp 'sport = :{port}'` names it), or choose another "
                "port: make try PORT=8001"
            ) from error


def ask(url: str, question: str) -> str:
    """Return the served model's answer, chosen greedily.

    Raises:
        StepFailed: the server does not answer, or not with a chat completion.
    """
    try:
        listed = requests.get(f"{url}/v1/models", timeout=REPLY_SECONDS)
        listed.raise_for_status()
        body = {
            "model": listed.json()["data"][0]["id"],
            "messages": [{"role": "user", "content": question}],
            "temperature": 0,
            "max_tokens": 64,
        }
        reply = requests.post(f"{url}/v1/chat/completions", json=body, timeout=REPLY_SECONDS)
        reply.raise_for_status()
        return str(reply.json()["choices"][0]["message"]["content"]).strip()
    except (requests.RequestException, LookupError, ValueError) as error:
        raise StepFailed(f"no answer from {url}: {error!r}. See the journal of vllm.") from error


def judge(second: Run, answer: str) -> list[str]:
    """Return what is wrong with the rehearsal; empty when it went well."""
    complaints = [f"the second run changed: {name}" for name in second.changed]
    wrong = unexpected(answer, cpu.expected_answer)
    return [*complaints, *([wrong] if wrong else [])]


def smoke_figures(host: Host) -> dict[str, Any]:
    """Return the host's own record of its smoke check; empty where there is none."""
    shown = host.attempt(f"cat {SMOKE_RECORD}")
    figures: dict[str, Any] = json.loads(shown.stdout) if shown.returncode == 0 else {}
    return figures


def summarise(
    stages: Stages,
    first: Run,
    second: Run,
    answer: str,
    figures: Mapping[str, Any],
    complaints: Sequence[str],
) -> dict[str, Any]:
    """Return the content of .try/summary.json."""
    return {
        "ok": not complaints,
        "complaints": list(complaints),
        "seconds": stages.seconds,
        "operation_seconds": dict(first.seconds),
        "changes": {"first": list(first.changed), "second": list(second.changed)},
        "question": cpu.question,
        "answer": answer,
        "smoke": dict(figures),
    }


def slowest(run: Run, count: int = 5) -> dict[str, float]:
    """Return the operations that took longest, longest first, and their seconds."""
    ranked = sorted(run.seconds.items(), key=lambda item: item[1], reverse=True)
    return dict(ranked[:count])


def _remember(folder: Path, host: Host, data: Mapping[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"address": host.address, "data": dict(data)}, indent=2)
    (folder / "stand-in.json").write_text(content)


def _converge(host: Host, data: Mapping[str, object], log: Path) -> Run:
    run = pyinfra_run.run(host, data, show=True, log=log)
    if run.code:
        raise StepFailed(
            f"[{host.name}] the run failed; what went wrong is above and in {log}. The container "
            f"is left as it is: look around with `{host.engine.program} exec -it {host.name} "
            "bash`. `make try` goes on from there."
        )
    return run


def report(summary: Mapping[str, Any], host: Host, chosen: Rehearsal) -> str:
    """Return what a person is told at the end."""
    inside = f"{host.engine.program} exec -it {host.name}"
    changes = summary["changes"]
    smoke_line = smoke.summary(summary["smoke"]) if summary["smoke"] else "none on record"
    verdict = "all is well" if summary["ok"] else "; ".join(summary["complaints"])
    return f"""
{summary["question"]}
  {summary["answer"]}

First run: {len(changes["first"])} operations changed something; second run: \
{len(changes["second"])}. Verdict: {verdict}.
Smoke check: {smoke_line}

Where to look
  API            http://127.0.0.1:{chosen.port}/v1
  journal        {inside} journalctl --unit vllm.service --follow
  configuration  {inside} ls /etc/vllm-g5g
  this summary   {chosen.folder.relative_to(ROOT)}/summary.json
Remove it all: make clean-try
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
