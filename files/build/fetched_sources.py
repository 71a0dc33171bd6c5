"""The git repositories that a build needs, each checked out at its revision before it starts.

A source that is there and whole is taken as it is, with no question to its server: where a tag was
moved upstream, the commit that it was first fetched at stays. One that is broken is fetched again.
Each is prepared beside its place and renamed, so what lies in its place was once whole.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time

RETRY_AFTER = (5, 20, 60, None)  # seconds; None: give up
# Nothing but commits is needed of a history; a server that offers no less than all is taken whole.
SHALLOW_REFUSED = re.compile(
    r"does not support shallow|not allow request for unadvertised object"
    r"|Direct fetching of that commit failed"
)
NO_SUCH_REVISION = re.compile(r"couldn't find remote ref|not our ref")
# What a build left in a source is no damage. For a repository it is a change of the submodule that
# it lies in, whatever git is told to ignore, so each is asked by itself.
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
FOR_EACH_SUBMODULE = ("submodule", "--quiet", "foreach", "--quiet", "--recursive")
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    # A connection on which nothing at all arrives for two minutes is a failed one.
    "GIT_HTTP_LOW_SPEED_LIMIT": "1",  # bytes a second
    "GIT_HTTP_LOW_SPEED_TIME": "120",  # seconds
    "LC_ALL": "C",  # git's messages are read
}


def say(text):
    print(text, flush=True)


def fetch(sources, folder, sleep=time.sleep):
    """Return source -> path for those that can be handed to cmake; fetch what is not there.

    The others are left to cmake, and named. SystemExit says which one could not be had, and why.
    """
    os.makedirs(folder, exist_ok=True)
    places = {}
    for number, source in enumerate(sources, 1):
        told = f"source {number} of {len(sources)}, {source.name} {short(source)}"
        if source.obstacle:
            say(f"{told}, is left to cmake: {source.obstacle}")
            continue
        path = place(folder, source)
        if is_whole(path, source):
            say(f"{told}, is there")
        else:
            say(f"{told}, from {source.url}")
            fetch_one(source, path, sleep)
        places[source] = path
    return places


def forget_others(places, folder):
    """Remove what lies in the folder beside the sources of the build that just succeeded."""
    kept = {os.path.basename(path) for path in places.values()}
    for name in sorted(set(os.listdir(folder)) - kept):
        say(f"removing {name}, which this build does not use")
        remove(os.path.join(folder, name))


def place(folder, source):
    return os.path.join(folder, f"{source.name}-{short(source)}")


def short(source):
    """Return a revision as people write it: 12 digits of a commit, a tag whole."""
    return source.revision[:12] if is_commit(source.revision) else source.revision


def is_commit(revision):
    return re.fullmatch("[0-9a-f]{40}", revision) is not None


def is_whole(path, source):
    """Say whether HEAD is the revision, every file is as committed and every submodule there."""
    if not os.path.isdir(path):
        return False
    head = git(path, "rev-parse", "--verify", "HEAD^{commit}")
    wanted = git(path, "rev-parse", "--verify", f"{reference(source)}^{{commit}}")
    if head.returncode or wanted.returncode or head.stdout != wanted.stdout:
        return False
    changes = (git(path, *CHANGES), git(path, *FOR_EACH_SUBMODULE, shlex.join(("git", *CHANGES))))
    if any(done.returncode or done.stdout for done in changes):
        return False
    return source.submodules == () or has_submodules(path, source.submodules or ())


def has_submodules(path, wanted):
    """Say whether the wanted submodules, or all, are checked out at their commits, nested ones too.

    git marks one that is missing with -, one on another commit with + and an unmerged one with U.
    """
    listed = git(path, "submodule", "status", "--recursive", "--", *wanted)
    return not listed.returncode and all(line[0] == " " for line in listed.stdout.splitlines())


def fetch_one(source, path, sleep):
    """Put a source in its place; SystemExit once the tries are used up or none can succeed."""
    new = path + ".new"
    remove(new)  # of a run that was interrupted
    for tried, delay in enumerate(RETRY_AFTER, 1):
        fault = attempt(source, new)
        if not fault:
            break
        if delay is None or NO_SUCH_REVISION.search(fault):
            sys.exit(refusal(source, tried, fault))
        tries = f"{tried} of {len(RETRY_AFTER)} tries"
        say(f"that failed, trying again in {delay} s ({tries}): {telling(fault)}")
        sleep(delay)
    remove(path)
    os.rename(new, path)


def attempt(source, path):
    """Return "" when the source is complete at the path, otherwise what git said.

    What an earlier attempt brought is kept and added to.
    """
    fault = download(source, path, ("--depth", "1"))
    if SHALLOW_REFUSED.search(fault):
        say("its server gives no single commits, fetching the whole history")
        remove(path)
        fault = download(source, path, ())
    return fault


def download(source, path, depth):
    """Do what cmake does for a source; return "" or what git said."""
    update = ("submodule", "update", "--quiet", "--init", "--recursive", "--force", *depth)
    commands = [
        ("init", "--quiet", "."),
        # Not `remote add`, which fails where an earlier attempt did it. Relative URLs of
        # submodules start from this one.
        ("config", "remote.origin.url", source.url),
        ("fetch", "--quiet", "--no-tags", *depth, "origin", *asked(source, depth)),
        ("checkout", "--quiet", "--force", "--detach", reference(source)),
    ]
    if source.submodules != ():
        commands.append((*update, "--", *(source.submodules or ())))
    os.makedirs(path, exist_ok=True)
    for command in commands:
        done = git(path, *command)
        if done.returncode:
            return done.stderr.strip() or f"git {command[0]} ended {done.returncode}"
    return "" if is_whole(path, source) else "what git fetched is not whole"


def reference(source):
    return source.revision if is_commit(source.revision) else f"refs/tags/{source.revision}"


def asked(source, depth):
    """Return what is asked of the server: the revision, or all that may lead to a commit."""
    if not is_commit(source.revision):
        return (f"+{reference(source)}:{reference(source)}",)
    if depth:
        return (source.revision,)
    return ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")


def git(path, *arguments):
    """Return the completed process; nothing is raised on a failure."""
    folder = os.path.dirname(os.path.abspath(path))
    # A checkout that lost its .git is not to be taken for part of a repository around it.
    environment = {**os.environ, **QUIET, "GIT_CEILING_DIRECTORIES": folder}
    options = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
    return subprocess.run(
        ("git", "-C", path, *options, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
    )


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def telling(fault):
    """Return the first line that names a fault; git goes on to what follows from it."""
    lines = fault.splitlines()
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])


def refusal(source, tried, fault):
    tries = "1 try" if tried == 1 else f"{tried} tries"
    what = f"{source.name} {source.revision} from {source.url}"
    told = f"cannot fetch {what} after {tries}: {telling(fault)}. What is built was left as it is. "
    if NO_SUCH_REVISION.search(fault):
        return told + (
            "The vLLM tree pins it, but it is not there any more: set vllm_version to another one, "
            "or point git to a mirror that has it (git config --system url.<mirror>.insteadOf "
            "<upstream>); then run again."
        )
    return told + (
        "Check the host's way out to that address, or point git to a mirror (git config --system "
        "url.<mirror>.insteadOf <upstream>); then run again."
    )
