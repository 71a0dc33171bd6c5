"""Bring a git tree to a tag with patches on top, as one commit that is a function of its inputs.

Run on the host, with a JSON object on standard input:
  tree, repository, tag, branch, python, torch_script, inputs (a digest),
  patches: [{name, text, versions}]
The new commit is prepared in a work tree beside; the tree itself moves to it only when all of it
succeeded, so a patch that fails leaves the tree as it was.
"""

import json
import os
import shutil
import subprocess
import sys
import time

RETRY_AFTER = (5, 20, None)  # seconds; None: give up
FIXED = {  # so that equal inputs give an equal commit id on every host
    "GIT_AUTHOR_NAME": "vllm-g5g",
    "GIT_AUTHOR_EMAIL": "vllm-g5g@localhost",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "vllm-g5g",
    "GIT_COMMITTER_EMAIL": "vllm-g5g@localhost",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_TERMINAL_PROMPT": "0",
}


def say(text):
    print(text, flush=True)


def run(*command, cwd=None, stdin=""):
    """Return the completed process; nothing is raised on a failure."""
    return subprocess.run(
        command, cwd=cwd, input=stdin, capture_output=True, text=True, env={**os.environ, **FIXED}
    )


def git(directory, *arguments, stdin=""):
    options = ("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false")
    return run("git", *options, "-C", directory, *arguments, stdin=stdin)


def must(done, message):
    """Return the standard output of what succeeded; otherwise end here and say why."""
    if done.returncode != 0:
        sys.exit(f"{message}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def forget_locks(tree):
    """Remove what a git that was killed leaves; no other is at work here, the deploy sees to it."""
    for folder, _, names in os.walk(os.path.join(tree, ".git")):
        for name in names:
            if name.endswith(".lock"):
                os.remove(os.path.join(folder, name))


def open_repository(tree, repository):
    if git(tree, "rev-parse", "--git-dir").stdout.strip() != ".git":
        shutil.rmtree(os.path.join(tree, ".git"), ignore_errors=True)
        must(run("git", "init", "--quiet", tree), f"cannot make a repository in {tree}")
    must(git(tree, "config", "remote.origin.url", repository), "cannot set the upstream")


def commit_of(tree, tag):
    done = git(tree, "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}^{{commit}}")
    return done.stdout.strip()


def fetch(tree, repository, tag):
    reference, shallow = f"refs/tags/{tag}", ("--quiet", "--depth", "1", "--no-tags")
    for delay in RETRY_AFTER:
        say(f"fetching {tag} from {repository}")
        done = git(tree, "fetch", *shallow, "origin", f"{reference}:{reference}")
        if done.returncode == 0:
            return
        if "couldn't find remote ref" in done.stderr:
            sys.exit(
                f"tag {tag} does not exist in {repository}: set vllm_version to a released one"
            )
        if delay is None:
            sys.exit(
                f"cannot fetch {tag} from {repository} after {len(RETRY_AFTER)} tries: "
                f"{done.stderr.strip()}. Check vllm_repository and the host's way out, run again."
            )
        say(f"that failed, trying again in {delay} s: {done.stderr.strip()}")
        time.sleep(delay)


def apply_patch(worktree, tag, patch):
    say(f"applying {patch['name']}")
    done = git(worktree, "apply", "--verbose", "--whitespace=nowarn", "-", stdin=patch["text"])
    if done.returncode != 0:
        said = done.stderr.splitlines()
        faults = [line for line in said if line.startswith(("error: patch", "error: corrupt"))]
        faults = faults or [line for line in said if line.startswith("error:")]
        sys.exit(
            f"patch {patch['name']} does not apply to {tag} (it is for {patch['versions']}): "
            f"{'; '.join(faults)}. Rebase it, or set vllm_version to one that it is for."
        )


def prepare(spec, worktree):
    """Return the id of the commit made in `worktree`."""
    say(f"checking out {spec['tag']}")
    base = commit_of(spec["tree"], spec["tag"])
    must(
        git(spec["tree"], "worktree", "add", "--quiet", "--force", "--detach", worktree, base),
        f"cannot check out {spec['tag']}",
    )
    say(f"running {spec['torch_script']}")
    must(
        run(spec["python"], spec["torch_script"], cwd=worktree),
        f"{spec['torch_script']} failed in {spec['tag']}",
    )
    for patch in spec["patches"]:
        apply_patch(worktree, spec["tag"], patch)
    must(git(worktree, "add", "--all"), "cannot stage the patched files")
    names = "\n".join(patch["name"] for patch in spec["patches"])
    message = f"Keep the host's torch, and patch\n\n{names}\n\nInputs: {spec['inputs']}\n"
    must(
        git(worktree, "commit", "--quiet", "--allow-empty", "-F", "-", stdin=message),
        "cannot commit",
    )
    return must(git(worktree, "rev-parse", "HEAD"), "cannot name the new commit")


def main(spec):
    tree, worktree = spec["tree"], spec["tree"] + ".preparing"
    os.makedirs(tree, exist_ok=True)
    forget_locks(tree)
    open_repository(tree, spec["repository"])
    if not commit_of(tree, spec["tag"]):
        fetch(tree, spec["repository"], spec["tag"])
    shutil.rmtree(worktree, ignore_errors=True)
    git(tree, "worktree", "prune")
    try:
        head = prepare(spec, worktree)
    finally:
        shutil.rmtree(worktree, ignore_errors=True)
        git(tree, "worktree", "prune")
    must(git(tree, "checkout", "--quiet", "--force", "-B", spec["branch"], head), "cannot switch")
    must(git(tree, "clean", "--quiet", "--force", "-d"), "cannot remove stray files")
    must(git(tree, "config", "vllm-g5g.head", head), "cannot record the commit")
    say(f"{spec['branch']} is at {head[:12]}")


main(json.load(sys.stdin))
