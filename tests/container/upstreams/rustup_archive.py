"""A stand-in for rustup's archive: a rustup-init, and the checksum beside it.

Its compiler only tells its version. What is real is what surrounds it: download, both checksums,
the folders and variables that rustup uses, and the repair of what is half installed.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

VERSION = "1.28.2"
PATH = "rustup/archive"
TRIPLES = ("aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu")

# As the real one: a toolchain whose update hash is there is taken for installed and left alone.
RUSTUP_INIT = """#!/bin/sh
set -eu
toolchain=stable
while [ $# -gt 0 ]; do
  case $1 in
    -y|--no-modify-path) ;;
    --profile) shift ;;
    --default-toolchain) shift; toolchain=$1 ;;
    *) echo "rustup-init: unexpected argument '$1'" >&2; exit 1 ;;
  esac
  shift
done
triple=$(uname -m)-unknown-linux-gnu
name=$toolchain-$triple
home=$RUSTUP_HOME/toolchains/$name
mkdir -p "$CARGO_HOME/bin" "$RUSTUP_HOME/update-hashes"
cat >"$CARGO_HOME/bin/cargo" <<'PROXY'
#!/bin/sh
exec "$RUSTUP_HOME/toolchains/$RUSTUP_TOOLCHAIN-$(uname -m)-unknown-linux-gnu/bin/${0##*/}" "$@"
PROXY
chmod 755 "$CARGO_HOME/bin/cargo"
cp "$CARGO_HOME/bin/cargo" "$CARGO_HOME/bin/rustc"
if [ -e "$RUSTUP_HOME/update-hashes/$name" ]; then
  echo "info: $name unchanged"
  exit 0
fi
mkdir -p "$home/bin" "$home/lib/rustlib/$triple/lib"
for tool in rustc cargo; do
  printf '#!/bin/sh\\necho "%s %s.0 (stand-in)"\\n' "$tool" "$toolchain" >"$home/bin/$tool"
  chmod 755 "$home/bin/$tool"
done
: >"$home/lib/rustlib/$triple/lib/libstd-standin.rlib"
echo stand-in >"$RUSTUP_HOME/update-hashes/$name"
"""


@dataclass(frozen=True)
class Published:
    """The archive laid out for one address: the folder to serve, and what a deploy must know."""

    folder: Path
    archive_url: str
    sha256: dict[str, str]

    @property
    def knobs(self) -> dict[str, object]:
        """The deploy's settings under which this stands in for rustup's archive."""
        return {
            "rustup_archive": self.archive_url,
            "rustup_version": VERSION,
            "rustup_sha256": self.sha256,
        }


def publish(folder: Path, port: int) -> Published:
    """Lay the archive out below `folder`, to be served at `port` of loopback."""
    digest = hashlib.sha256(RUSTUP_INIT.encode()).hexdigest()
    for triple in TRIPLES:
        target = folder / PATH / VERSION / triple
        target.mkdir(parents=True, exist_ok=True)
        (target / "rustup-init").write_text(RUSTUP_INIT)
        # The published file names the path that it was made at.
        (target / "rustup-init.sha256").write_text(f"{digest} *target/{triple}/rustup-init\n")
    url = f"http://127.0.0.1:{port}/{PATH}"
    return Published(folder, url, dict.fromkeys(TRIPLES, digest))
