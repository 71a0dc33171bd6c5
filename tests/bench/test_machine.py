"""What a report says of the machine."""

from pathlib import Path

from files.bench.machine import describe


def test_a_machine_without_its_files_is_described_by_what_is_left(tmp_path: Path) -> None:
    described = describe(tmp_path)
    assert (described["cpu"], described["memory_bytes"], described["product"]) == (None,) * 3
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal:  100 kB\n")
    described = describe(tmp_path)
    assert (described["cpu"], described["memory_bytes"]) == ("0xd0c", 102400)
