"""Print the state of a git tree, as JSON. Arguments: the tree, the tag it should stand on."""

import json
import os
import subprocess
import sys

MOST_CHANGES = 10  # named; an operator who sees ten needs no eleventh


def git(tree, *arguments):
    # The tree may belong to another user; looking at it is safe, no hook runs.
    done = subprocess.run(
        ("git", "-c", "safe.directory=*", "-C", tree, *arguments), capture_output=True, text=True
    )
    return done.stdout.strip("\n") if done.returncode == 0 else ""


def trailer(message, name):
    return next((line[len(name) :] for line in message.splitlines() if line.startswith(name)), "")


def main(tree, tag):
    if not os.path.isdir(os.path.join(tree, ".git")):
        return None
    try:
        message = git(tree, "log", "-1", "--format=%B")
    except FileNotFoundError:  # git itself is gone; an earlier stage puts it back
        return None
    changes = git(tree, "status", "--porcelain").splitlines()
    return {
        "repository": git(tree, "config", "remote.origin.url"),
        "tag_commit": git(tree, "rev-parse", "--verify", f"refs/tags/{tag}^{{commit}}"),
        "head": git(tree, "rev-parse", "--verify", "HEAD"),
        "parent": git(tree, "rev-parse", "--verify", "HEAD^"),
        "recorded_head": git(tree, "config", "vllm-g5g.head"),
        "inputs": trailer(message, "Inputs: "),
        "changes": changes[:MOST_CHANGES],
        "change_count": len(changes),
    }


print(json.dumps(main(*sys.argv[1:])))
