"""Put a checkpoint in its place: whole, root's own, with a manifest of what it holds.

Run as a job (files/jobs/job.py), by root. Argument: a JSON file with directory, identity, python,
user, producer (source text of a program that writes the checkpoint into the directory given as its
first argument) and arguments (of the producer, after that). A download that broke off goes on where
it was, in `<directory>.partial`; the directory itself appears only when it is complete.

The producer talks to the network and parses what comes, so it, and nothing else, runs as `user`.
Root looks at what it wrote only when nothing of it runs any more, follows no link in there, and
makes every file its own before it trusts one: the server, which is the same user, cannot alter
what it serves. User= on the unit with this part in an ExecStartPost=+ would be no shorter, and
weaker: systemd starts that beside whatever the main process left running. A token, which comes in
HF_TOKEN, goes to the producer's standard input: an environment can be read by all of its user's
processes, the server among them.
"""

import ctypes
import hashlib
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(directory):
    """Return relative path -> size, mtime_ns and sha256 of every file, less hidden folders."""
    files = {}
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(folder, name)
            status = os.stat(path)
            files[os.path.relpath(path, directory)] = {
                "size": status.st_size,
                "mtime_ns": status.st_mtime_ns,
                "sha256": sha256(path),
            }
    return files


def everything_in(tree):
    """Yield the tree and all in it, each folder before it is looked into."""

    def fail(error):
        raise error

    yield tree
    for folder, folders, names in os.walk(tree, onerror=fail):
        yield from (os.path.join(folder, name) for name in (*folders, *names))


def mode_of(path):
    """Return the mode that the file or folder is to have; None for what a checkpoint has not.

    A link, or a second name of a file, can stand for a file outside the tree.
    """
    status = os.lstat(path)
    if stat.S_ISDIR(status.st_mode):
        return 0o755
    return 0o644 if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else None


def give(tree, uid, gid):
    """Make the tree and all in it this owner's, and readable by all; nothing else may write there.

    A folder changes hands before what is in it: from then on its names are its new owner's.
    """
    for path in everything_in(tree):
        mode = mode_of(path)
        if mode is None:
            shutil.rmtree(tree)
            sys.exit(
                f"the download put {path} there, which is neither a folder nor a file with one "
                "name. It was thrown away; what served before is untouched. Look at where it came "
                "from (model_source, hf_endpoint), then run again."
            )
        os.chown(path, uid, gid, follow_symlinks=False)
        os.chmod(path, mode)


def account_of(user):
    try:
        return pwd.getpwnam(user)
    except KeyError:
        sys.exit(f"there is no account {user} on this host, which the download is to run as")


def adopt_orphans():
    """Become the parent of whatever process below this one loses its own."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit(f"cannot become a subreaper: {os.strerror(ctypes.get_errno())}")


def children():
    """Return the ids of this process's children. Not every kernel lists them in one file."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        status = read(f"/proc/{entry}/status") or ""
        if f"\nPPid:\t{os.getpid()}\n" in status:
            found.append(int(entry))
    return found


def end_rest():
    """Kill what the producer left running; what it forked meanwhile falls to this process too."""
    while True:
        for child in children():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return


def run_as(account, command, home, token):
    """Run the command as the account and return its exit status; nothing of it is left running."""
    places = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "HF_HOME": f"{home}/huggingface"}
    adopt_orphans()
    shutil.rmtree(home, ignore_errors=True)
    os.mkdir(home, 0o700)
    os.chown(home, account.pw_uid, account.pw_gid)
    try:
        return subprocess.run(
            command, input=token, text=True, check=False, env={**os.environ, **places}, cwd=home,
            user=account.pw_uid, group=account.pw_gid, extra_groups=[], umask=0o022,
        ).returncode  # fmt: skip
    finally:
        end_rest()
        shutil.rmtree(home)


def produce(spec, partial, identity):
    """Have the producer write the checkpoint, or go on with it, in `partial`; make it root's."""
    account = account_of(spec["user"])
    token = os.environ.pop("HF_TOKEN", "")
    if os.path.exists(partial) and read(identity) != spec["identity"]:
        shutil.rmtree(partial)  # the rest of another checkpoint, or of nobody knows what
    with open(identity, "w") as file:
        file.write(spec["identity"])
    os.makedirs(partial, exist_ok=True)
    give(partial, account.pw_uid, account.pw_gid)
    # -I: nothing is imported from where the user can write.
    command = (spec["python"], "-I", "-u", "-c", spec["producer"], partial, *spec["arguments"])
    if run_as(account, command, f"{spec['directory']}.home", token) != 0:
        sys.exit(f"could not make {spec['identity']}; the reason is above")
    give(partial, os.geteuid(), os.getegid())


def read(path):
    try:
        with open(path, errors="replace") as file:  # a process may have any bytes for its name
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None


def main(path):
    with open(path) as file:
        spec = json.load(file)
    directory = spec["directory"]
    manifest, partial = directory + ".manifest.json", directory + ".partial"
    identity = partial + ".identity"  # beside it: in there the user could put a link in its place
    produce(spec, partial, identity)
    print("computing digests", flush=True)
    files = describe(partial)
    if os.path.exists(manifest):
        os.remove(manifest)
    shutil.rmtree(directory, ignore_errors=True)
    os.replace(partial, directory)
    os.remove(identity)
    with open(manifest + ".new", "w") as file:
        json.dump({"identity": spec["identity"], "files": files}, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(manifest + ".new", manifest)
    total = sum(found["size"] for found in files.values())
    print(f"{spec['identity']} is in place: {len(files)} files, {total / 1e6:.1f} MB", flush=True)


main(*sys.argv[1:])
