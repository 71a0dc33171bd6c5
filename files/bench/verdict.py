"""What a smoke check demands, and why a bandwidth may have missed it."""

from collections.abc import Mapping
from typing import Any

IDLE_REASON = 0x1  # a throttle bit that only says that nothing was running


def bandwidth_complaints(report: Mapping[str, Any], least_gb_per_s: float | None) -> list[str]:
    """Return what is wrong with a bandwidth report; a low figure comes with its likely reasons."""
    if "error" in report:
        return [f"bandwidth could not be measured: {report['error']}"]
    figures = report["figures"]
    wrong = [f"{name}: {f['wrong']}" for name, f in figures.items() if f["wrong"]]
    read = figures["read"]["median"]
    if least_gb_per_s is not None and read < least_gb_per_s:
        found = "; ".join(reasons(report.get("conditions", {}))) or "no reason was found"
        wrong.append(
            f"memory reads at {read:.1f} GB/s, wanted at least {least_gb_per_s:.1f}: {found}"
        )
    return wrong


def reasons(conditions: Mapping[str, Any]) -> list[str]:
    """Return what holds the GPU back, as nvidia-smi told it while the probe ran."""
    found = [
        f"process {other['pid']} ({other['process']}) holds {other['mib']} MiB of the GPU"
        for other in conditions.get("other_processes", [])
    ]
    if conditions.get("ecc.mode.current") == "Enabled":
        found.append("ECC is on, which costs bandwidth on GDDR memory")
    clock, most = (_number(conditions.get(key)) for key in ("clocks.mem", "clocks.max.mem"))
    if clock is not None and most is not None and clock < most:
        found.append(f"the memory clock was {clock:g} MHz under load, its maximum is {most:g}")
    throttle = int(_number(conditions.get("clocks_throttle_reasons.active")) or 0) & ~IDLE_REASON
    if throttle:
        found.append(f"clocks were held back (throttle reasons {throttle:#x})")
    return found


def speed_complaints(report: Mapping[str, Any], least_tokens_per_s: float | None) -> list[str]:
    """Return the throughput report's complaints, and each length that decodes too slowly."""
    complaints: list[str] = list(report["complaints"])
    for run in report["runs"]:
        speed = run["decode_tokens_per_s"]
        if least_tokens_per_s is None or speed is None or speed["median"] >= least_tokens_per_s:
            continue
        complaints.append(
            f"{run['tokens_asked']} tokens decode at {speed['median']:.2f} tokens/s, wanted at "
            f"least {least_tokens_per_s:g}; repeats lie between {speed['min']:.2f} and "
            f"{speed['max']:.2f}"
        )
    return complaints


def _number(text: Any) -> float | None:
    try:
        return float(int(text, 16)) if str(text).startswith("0x") else float(text)
    except (TypeError, ValueError):
        return None
