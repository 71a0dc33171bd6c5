"""From the configured server to its command line, environment, unit and refusals."""

import subprocess
from dataclasses import replace

import pytest

from desired import server_unit, serving
from desired.server_unit import ServerUnit
from desired.serving import Server
from tests.servers import CPU, GPU


def unit_of(server: Server, generation: int | None = None) -> ServerUnit:
    return ServerUnit(
        server=server,
        user="root",
        stamp="/var/lib/vllm-g5g/build.json",
        manifest="/var/lib/vllm-g5g/models/tiny.json",
        question="What is SRE?",
        memory_max="95%",
        api_key_generation=generation,
    )


def test_each_gpu_takes_a_share_of_the_model():
    words = serving.argv(GPU)
    assert words[words.index("--tensor-parallel-size") + 1] == "2"
    assert "--gpu-memory-utilization" in words
    assert "--gpu-memory-utilization" not in serving.argv(CPU)


def test_an_unknown_variable_stops_the_server_and_the_hub_is_never_asked():
    assert "--fail-on-environ-validation" in serving.argv(CPU)
    environment = serving.environment(CPU)
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert not serving.SECRET_VARIABLES & environment.keys()


PROBLEMS = {
    "bfloat16 on a T4G": (replace(GPU, dtype="bfloat16"), "7.5", 'dtype "bfloat16" needs'),
    "fp8 KV cache on an A100": (replace(GPU, kv_cache_dtype="fp8"), "8.0", "8.9, found 8.0"),
    "fp8 KV cache on a T4G": (replace(GPU, kv_cache_dtype="fp8_e5m2"), "7.5", "kv_cache_dtype"),
    "bfloat16 KV cache on a T4G": (replace(GPU, kv_cache_dtype="bfloat16"), "7.5", "8.0"),
    "a backend variable that nothing reads": (
        replace(CPU, environment={"VLLM_ATTENTION_BACKEND": "TRITON_ATTN"}),
        None,
        "use --attention-backend",
    ),
    "a token among the variables": (replace(CPU, environment={"HF_TOKEN": "x"}), None, "a secret"),
}


@pytest.mark.parametrize(("server", "capability", "said"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_could_never_run_is_refused(server, capability, said):
    (problem,) = serving.problems(server, capability)
    assert said in problem


def test_what_runs_is_not_refused():
    assert serving.problems(GPU, "7.5") == []
    assert serving.problems(replace(GPU, dtype="bfloat16"), "8.0") == []
    assert serving.problems(replace(GPU, dtype="bfloat16"), "10.0") == []
    assert serving.problems(replace(CPU, dtype="bfloat16"), None) == []


@pytest.mark.parametrize(
    ("address", "key", "asked", "warned"),
    [
        ("127.0.0.1", "auto", False, False),
        ("::1", "auto", False, False),
        ("localhost", "none", False, False),
        ("0.0.0.0", "auto", True, False),
        ("10.0.0.7", "none", False, True),
        ("127.0.0.1", "always", True, False),
    ],
)
def test_an_open_server_asks_for_a_key_or_is_warned_of(address, key, asked, warned):
    assert serving.needs_key(address, key) is asked
    assert (serving.exposure(replace(CPU, address=address), key) is not None) is warned


@pytest.mark.parametrize(
    ("listens", "reached"),
    [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("10.0.0.7", "10.0.0.7"), ("fd00::1", "[fd00::1]")],
)
def test_the_host_reaches_its_own_server(listens, reached):
    assert serving.reachable_address(listens) == reached


def unit_text(server: Server, generation: int | None = None) -> str:
    return server_unit.texts(unit_of(server, generation))[server_unit.UNIT_PATH]


def complaints(text: str, tmp_path) -> str:
    """Return systemd's complaints about the unit; its script is not on this machine."""
    path = tmp_path / "vllm.service"
    path.write_text(text.replace(server_unit.CHECK_SCRIPT, "/etc/hostname"))
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    return done.stderr + str(done.returncode)


@pytest.mark.parametrize("server", [CPU, GPU], ids=["cpu", "gpu"])
def test_systemd_accepts_the_unit(server, tmp_path):
    assert complaints(unit_text(server, generation=1), tmp_path) == "0"


def test_systemd_would_have_complained_of_a_wrong_directive(tmp_path):
    wrong = unit_text(CPU).replace("KillMode=control-group", "KillMode=nothing")
    assert "Failed to parse kill mode" in complaints(wrong, tmp_path)


def test_a_name_cannot_smuggle_a_directive_into_the_unit():
    text = unit_text(replace(CPU, served_name="x\nUser=root %n"))
    assert "Description=vLLM server of x User=root %%n\n" in text
    assert "\nUser=root %" not in text


@pytest.mark.parametrize(("server", "bound"), [(CPU, 2.5), (GPU, 3.0)], ids=["cpu", "gpu"])
def test_the_unit_is_as_hardened_as_cuda_allows(server, bound, tmp_path):
    path = tmp_path / "vllm.service"
    path.write_text(unit_text(server))
    shown = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    verdict = shown.strip().splitlines()[-1]
    print(verdict)
    assert float(verdict.split(":")[1].split()[0]) <= bound


def test_the_unit_names_the_key_file_only_where_a_key_is_asked_for():
    assert f"EnvironmentFile={server_unit.API_KEY_PATH}" in unit_text(CPU, generation=1)
    assert server_unit.API_KEY_PATH not in unit_text(CPU)


def test_what_is_compared_is_what_is_written():
    unit = unit_of(GPU, 3)
    written = {entry.path: getattr(entry, "content", "") for entry in server_unit.entries(unit)}
    wanted = server_unit.wanted(unit)
    assert {path: written[path] for path in wanted.texts} == dict(wanted.texts)
    for path in wanted.watched:
        assert path in wanted.texts[server_unit.UNIT_PATH]
