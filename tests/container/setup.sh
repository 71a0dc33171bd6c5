#!/bin/sh
# Set up what the Makefile's targets need and this machine lacks.
#   setup.sh python   a .venv from requirements.lock, each file checked against its hash
#   setup.sh engine   a container engine, and what builds the stand-in's image
# Where root is needed and not had, the command to type is printed instead. Running it again is
# cheap: it installs nothing twice.
set -eu
cd "$(dirname "$0")/../.."

say() { printf '==> %s\n' "$*" >&2; }
stop() { printf '%s\n' "$*" >&2; exit 1; }

# Install Debian packages, or print the command that does.
debian() {
    [ $# -gt 0 ] || return 0
    command -v apt-get >/dev/null || stop "Missing here: $*. Install them, then try again."
    [ "$(id -u)" = 0 ] || stop "Missing here: $*. Type: sudo apt-get install --yes $*"
    say "Installing $* from Debian"
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes -o DPkg::Lock::Timeout=600 "$@"
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if new_enough "$python"; then
            return 0
        fi
    done
    stop "No Python 3.11 or newer is on PATH. Name one: make try PYTHON=/path/to/python3"
}

set_up_python() {
    stamp=.venv/.installed-from
    wanted=$(cat requirements.lock pyproject.toml pyinfra_ssm/pyproject.toml | sha256sum)
    if [ -x .venv/bin/python ] && [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then
        return 0
    fi
    find_python
    "$python" -c 'import ensurepip' 2>/dev/null || debian python3-venv
    say "Installing requirements.lock into .venv"
    new_enough .venv/bin/python || "$python" -m venv --clear .venv
    .venv/bin/python -m pip install --disable-pip-version-check --require-hashes \
        --requirement requirements.lock
    .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps \
        --no-build-isolation --editable pyinfra_ssm --editable .
    printf '%s\n' "$wanted" >$stamp
}

set_up_engine() {
    missing=
    if ! docker info >/dev/null 2>&1; then
        command -v podman >/dev/null || missing="podman runc"
        # Debian's podman is content with crun, which cannot boot systemd under cgroup v1.
        command -v runc >/dev/null || [ -x /usr/sbin/runc ] || missing="${missing:-runc}"
    fi
    command -v mmdebstrap >/dev/null || missing="$missing mmdebstrap"
    command -v git >/dev/null || missing="$missing git"
    command -v gpg >/dev/null || missing="$missing gnupg"
    # shellcheck disable=SC2086  # a list of words
    debian $missing
}

for part in "$@"; do
    case $part in
    python) set_up_python ;;
    engine) set_up_engine ;;
    *) stop "setup.sh sets up python or engine, not '$part'" ;;
    esac
done
