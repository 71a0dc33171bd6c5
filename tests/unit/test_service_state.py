"""What the fact tells of a service: its process, its files and its drop-ins."""

import subprocess

from facts.service import ServiceFacts
from files.bench import service_state
from files.service import check_start


def test_the_fact_sends_the_module_alone_and_reads_what_it_says(tmp_path):
    stamp = tmp_path / "stamp"
    stamp.write_text("{}")
    command = ServiceFacts().command(
        unit="no-such.service",
        unit_file=str(tmp_path / "none"),
        url="http://127.0.0.1:1",
        model="tiny",
        question='What\'s "SRE"?',
        api_key_file=None,
        watch=[str(stamp)],
        variables=["HOME"],
    )
    told = subprocess.run(
        ["sh", "-c", command.get_raw_value()], cwd=tmp_path, capture_output=True, text=True
    )
    assert told.stderr == ""
    found = ServiceFacts().process(told.stdout.splitlines())
    assert (found["unit_sha256"], found["process"]["argv"], found["answer"]) == ("", [], None)
    assert found["versions"] == {str(stamp): service_state.version(str(stamp))}


def test_no_variable_is_told_but_those_asked_for():
    environment = {"VLLM_API_KEY": "abc123", "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        ["/bin/cat", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as cat:
        assert cat.stdin is not None
        assert cat.stdout is not None
        cat.stdin.write(b"it runs\n")
        cat.stdin.flush()
        assert cat.stdout.readline() == b"it runs\n"  # before that, /proc still shows nothing
        shown = service_state.process(cat.pid, ["HF_HUB_OFFLINE"])
    assert shown["argv"] == ["/bin/cat", "-"]
    assert shown["environment"] == {"HF_HUB_OFFLINE": "1"}


def test_a_version_changes_whenever_a_file_is_replaced(tmp_path):
    path = tmp_path / "stamp"
    assert service_state.version(str(path)) == ""
    path.write_text("same")
    first = service_state.version(str(path))
    (tmp_path / "new").write_text("same")
    (tmp_path / "new").rename(path)
    assert service_state.version(str(path)) not in ("", first)


def test_a_start_is_recorded_in_the_versions_that_it_is_compared_with(tmp_path):
    path, absent = str(tmp_path / "stamp"), str(tmp_path / "absent")
    (tmp_path / "stamp").write_text("{}")
    recorded = check_start.record([path, absent])
    assert recorded[path]["version"] == service_state.version(path) != ""
    assert recorded[absent]["version"] == service_state.version(absent) == ""


def test_the_generation_of_a_key_is_told_and_never_the_key(tmp_path):
    key = tmp_path / "key.env"
    assert service_state.key_generation(str(key)) is None
    key.write_text("VLLM_API_KEY=abc123\n# generation 4\n")
    assert service_state.key_generation(str(key)) == 4
    key.write_text("# generation 4\n")
    assert service_state.key_generation(str(key)) is None


def test_drop_ins_of_this_unit_alone_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(service_state, "UNIT_DIRECTORIES", (f"{tmp_path}/etc", f"{tmp_path}/run"))
    for path in (
        "etc/vllm.service.d",
        "etc/service.d",
        "run/vllm.service.d",
        "run/other.service.d",
    ):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "x.conf").write_text(path)
    (tmp_path / "etc/vllm.service.d/notes").write_text("no drop-in")
    assert service_state.drop_ins("vllm.service") == {
        f"{tmp_path}/etc/vllm.service.d/x.conf": "etc/vllm.service.d",
        f"{tmp_path}/run/vllm.service.d/x.conf": "run/vllm.service.d",
    }
