"""The shell scripts that Run Command runs on the host; pure. POSIX sh, coreutils and gzip."""

import base64
import gzip
import shlex
from collections.abc import Mapping

# Characters of output in one answer, below Run Command's 24,000 by room for our first line.
PIECE = 23_000

# Run Command sets none of these (https://github.com/aws/amazon-ssm-agent/issues/427), and git, pip
# and others give up without a home.
_GO_HOME = (
    'HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)} USER=$(id -un) LOGNAME=$USER; '
    "export HOME USER LOGNAME; cd ~ 2>/dev/null || cd /"
)
_FOLDER = 'umask 077; d=$(mktemp -d "${TMPDIR:-/tmp}/pyinfra-ssm.XXXXXXXX") || exit 9'


def tools_script() -> str:
    """Fail, with their names, where tools are missing that the other scripts use."""
    return (
        'm=; for t in base64 gzip mktemp realpath sha256sum; do command -v "$t" >/dev/null || '
        'm="$m $t"; done; [ -z "$m" ] || { echo "the host has no$m" >&2; exit 9; }'
    )


def inline_script(packed: Mapping[str, str]) -> str:
    """Make a folder with these files in it; to be followed by command_script()."""
    files = (f"cat >\"$d/{name}.packed\" <<'@'\n{text}\n@" for name, text in packed.items())
    return "\n".join([_FOLDER, *files])


def uploaded_script(folder: str) -> str:
    """Go to a folder that has the files already; to be followed by command_script()."""
    return f"umask 077; d={shlex.quote(folder)}"


def command_script(timeout: float | None, terminal: bool) -> str:
    """Run the folder's `script` with its `stdin`; print `folder status sizes`, then the beginning
    of its packed output.

    The sizes are of stdout and stderr as base64 of gzip, one after the other in the file `all`.
    """
    return "\n".join(
        [
            "export d",
            'for f in script stdin; do base64 -d <"$d/$f.packed" | gzip -dc >"$d/$f"; done',
            "b=$(date +%s); umask 022",
            _GO_HOME,
            f'{_runner(timeout, terminal)} <"$d/stdin" >"$d/out" 2>"$d/err"; s=$?',
            _told_from_a_timeout(timeout),
            'for f in out err; do : >"$d/$f.packed"; [ ! -s "$d/$f" ] || '
            'gzip -c "$d/$f" | base64 -w0 >"$d/$f.packed"; done',
            'cat "$d/out.packed" "$d/err.packed" >"$d/all"',
            'o=$(($(wc -c <"$d/out.packed"))); e=$(($(wc -c <"$d/err.packed")))',
            'echo "$d $s $o $e"',
            f'head -c {PIECE} "$d/all"',
            f'[ $((o + e)) -gt {PIECE} ] || rm -rf "$d"',
        ]
    )


def _told_from_a_timeout(timeout: float | None) -> str:
    """Set s to `timeout` if time was up: a command may end with those numbers by itself."""
    if timeout is None:
        return ":"
    is_late = f'[ "$(($(date +%s) - b))" -ge {int(timeout)} ]'
    return f"case $s in 124|137) {is_late} && s=timeout;; esac"


def _runner(timeout: float | None, terminal: bool) -> str:
    runner = 'sh "$d/script"'
    if terminal:
        runner = f"script -qec {shlex.quote(runner)} /dev/null"
    return runner if timeout is None else f"timeout -k 1 {timeout:g} {runner}"


def fetch_script(folder: str, at: int) -> str:
    """Print the next piece of a command's output."""
    return f"tail -c +{at + 1} {shlex.quote(folder)}/all | head -c {PIECE}"


def discard_script(folder: str) -> str:
    return f"rm -rf {shlex.quote(folder)}"


def folder_script() -> str:
    """Make a folder for an upload and print its name."""
    return f'{_FOLDER}; echo "$d"'


def append_script(folder: str, name: str, piece: str) -> str:
    """Add a piece of base64 to a file of an upload."""
    return f"printf %s {shlex.quote(piece)} >>{shlex.quote(folder)}/{name}.packed"


def finish_script(folder: str, path: str, digest: str, user: str | None) -> str:
    """Check an upload and put it in the place of `path`, whose mode and owner it takes over."""
    owner = f'chown {shlex.quote(user + ":")} "$new" || exit 9' if user else ":"
    return "\n".join(
        [
            f'd={shlex.quote(folder)}; trap \'rm -rf "$d" "$new"\' EXIT; umask 077',
            _GO_HOME,
            'no() { echo "$1" >&2; exit 9; }',
            f'name={shlex.quote(path)}; path=$(realpath -m -- "$name") || exit 9',
            'case $name in */) no "$name is a directory" ;; esac',
            '[ ! -d "$path" ] || no "$path is a directory"',
            '[ ! -L "$path" ] || no "$path is a link to itself"',
            '[ ! -e "$path" ] || [ -f "$path" ] || no "$path is not a regular file"',
            _check_right_to_write(user),
            'new=$(mktemp "$(dirname -- "$path")/.pyinfra-ssm.XXXXXXXX") || exit 9',
            'base64 -d <"$d/content.packed" | gzip -dc >"$new" || exit 9',
            f'[ "$(sha256sum <"$new")" = "{digest}  -" ] || no damaged',
            owner,
            # The access list is part of the mode.
            '[ ! -e "$path" ] || cp --attributes-only --preserve=mode,ownership '
            '-- "$path" "$new" || exit 9',
            'mv -fT -- "$new" "$path"',
        ]
    )


def _check_right_to_write(user: str | None) -> str:
    """Refuse what the user may not do, since root does it in the user's place."""
    if user is None:
        return ":"
    may = '[ -w "$path" ] || { [ ! -e "$path" ] && [ -w "$(dirname -- "$path")" ]; }'
    check = f"su -s /bin/sh {shlex.quote(user)} -c {shlex.quote(may)}"
    return f'export path; {check} || no "Permission denied"'


def read_script(path: str, user: str | None) -> str:
    """Print a file as `user` (None: root); what has no end, as a pipe, is refused."""
    name = shlex.quote(path)
    command = (
        f"[ ! -e {name} ] || [ -f {name} ] || [ -d {name} ] || "
        f"{{ echo not a regular file >&2; exit 1; }}; cat -- {name}"
    )
    return f"su -s /bin/sh {shlex.quote(user)} -c {shlex.quote(command)}" if user else command


def pack(content: bytes) -> str:
    """Return content as the scripts take it: base64 of gzip."""
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()
