"""Print whether one Rust toolchain below a folder works, as JSON.

Arguments: the folder (rustup/ and cargo/ lie in it) and the toolchain, such as "1.95". What runs is
believed, not what is there: an interrupted installation leaves the directories behind.
"""

import glob
import json
import os
import re
import subprocess
import sys

home, name = sys.argv[1:]
machine = os.uname().machine
triple = f"{machine}-unknown-linux-gnu"
toolchain = f"{home}/rustup/toolchains/{name}-{triple}"
homes = {"RUSTUP_HOME": f"{home}/rustup", "CARGO_HOME": f"{home}/cargo", "RUSTUP_TOOLCHAIN": name}


def version(program):
    """Return the version a program reports of itself, or None where it does not run."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, env={**os.environ, **homes}
        )
    except OSError:
        return None
    match = re.match(r"\w+ (\d[\w.-]*)", done.stdout)
    return match.group(1) if done.returncode == 0 and match else None


rustlib = f"{toolchain}/lib/rustlib/{triple}/lib"
print(
    json.dumps(
        {
            "machine": machine,
            "directory": os.path.lexists(toolchain),
            "rustc": version(f"{toolchain}/bin/rustc"),
            "cargo": version(f"{home}/cargo/bin/cargo"),  # by way of rustup, as the build does
            "standard_library": bool(glob.glob(f"{rustlib}/libstd-*.rlib")),
        }
    )
)
