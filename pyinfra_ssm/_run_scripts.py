"""The shell scripts that Run Command runs on the host; pure. POSIX sh, coreutils and gzip."""

import base64
import shlex

# Characters of output in one answer, below Run Command's 24,000 by room for our first line.
PIECE = 23_000

_FOLDER = 'umask 077; d=$(mktemp -d "${TMPDIR:-/tmp}/pyinfra-ssm.XXXXXXXX") || exit 9'


def command_script(command: str, stdin: bytes, timeout: float | None, terminal: bool) -> str:
    """Run a command; print `folder status sizes`, then the beginning of its packed output.

    The sizes are of stdout and stderr as base64 of gzip, one after the other in the file `all`.
    """
    runner = _runner(timeout, terminal)
    expired = 'case $s in 124|137) [ -n "$t" ] && s=timeout;; esac' if timeout is not None else ":"
    return "\n".join(
        [
            _FOLDER,
            "export d",
            _write("script", command.encode("utf-8", "surrogateescape")),
            _write("stdin", stdin),
            f"t={'1' if timeout is not None else ''}",
            "umask 022; cd ~ 2>/dev/null || cd /",
            f'{runner} <"$d/stdin" >"$d/out" 2>"$d/err"; s=$?',
            expired,
            'for f in out err; do : >"$d/$f.packed"; [ ! -s "$d/$f" ] || '
            'gzip -c "$d/$f" | base64 -w0 >"$d/$f.packed"; done',
            'cat "$d/out.packed" "$d/err.packed" >"$d/all"',
            'o=$(($(wc -c <"$d/out.packed"))); e=$(($(wc -c <"$d/err.packed")))',
            'echo "$d $s $o $e"',
            f'head -c {PIECE} "$d/all"',
            f'[ $((o + e)) -gt {PIECE} ] || rm -rf "$d"',
        ]
    )


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
    return f'{_FOLDER}; : >"$d/packed"; echo "$d"'


def append_script(folder: str, piece: str) -> str:
    """Add a piece of base64 to an upload."""
    return f"printf %s {piece} >>{shlex.quote(folder)}/packed"


def finish_script(folder: str, path: str, digest: str, user: str | None) -> str:
    """Check an upload and put it in the place of `path`, whose mode and owner it takes over."""
    owner = f'chown {shlex.quote(user + ":")} "$new" || exit 9' if user else ":"
    return "\n".join(
        [
            f'd={shlex.quote(folder)}; trap \'rm -rf "$d" "$new"\' EXIT; umask 077',
            f"path=$(realpath -m -- {shlex.quote(path)}) || exit 9",
            '[ ! -d "$path" ] || { echo "$path is a directory" >&2; exit 9; }',
            'new=$(mktemp "$(dirname -- "$path")/.pyinfra-ssm.XXXXXXXX") || exit 9',
            'base64 -d <"$d/packed" | gzip -dc >"$new" || exit 9',
            f'[ "$(sha256sum <"$new")" = "{digest}  -" ] || {{ echo damaged >&2; exit 9; }}',
            owner,
            '[ ! -e "$path" ] || { chmod --reference="$path" "$new" && '
            'chown --reference="$path" "$new"; } || exit 9',
            'mv -fT -- "$new" "$path"',
        ]
    )


def _write(name: str, content: bytes) -> str:
    return f"base64 -d >\"$d/{name}\" <<'@'\n{base64.b64encode(content).decode()}\n@"
