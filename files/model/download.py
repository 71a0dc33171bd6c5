"""Download a checkpoint from the model hub. Run by the serving interpreter, which has the library.

Arguments: the directory to write into, the repository, its revision. Standard input: a token, or
nothing. What is there already is not downloaded again.
"""

import ctypes
import os
import sys

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from huggingface_hub.utils import filter_repo_objects

# Formats that vLLM does not load; they would double the download.
UNUSED = ["*.gguf", "*.pth", "*.bin", "original/*", "onnx/*"]
PR_SET_DUMPABLE = 4  # linux/prctl.h


def read_token():
    """Return the token, or False for none, once no other process of this user can look in here."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    return sys.stdin.read().strip() or False


def incomplete(directory, sizes):
    """Return the files that are missing or of another size than the hub says, of {name: bytes}."""
    paths = {name: os.path.join(directory, name) for name in sizes}
    return [
        name
        for name, path in paths.items()
        if not os.path.isfile(path) or os.path.getsize(path) != sizes[name]
    ]


def download(directory, repository, revision, token):
    """Have all files of one commit, or exit.

    What the hub lists is asked for first and compared at the end: where the hub cannot be reached
    or refuses, snapshot_download() is content with a directory that has anything in it at all.
    [source, 2.4.0; https://github.com/huggingface/huggingface_hub/issues/3007]
    """
    listed = HfApi(token=token).model_info(repository, revision=revision, files_metadata=True)
    sizes = {file.rfilename: file.size for file in listed.siblings}
    snapshot_download(
        repository, revision=listed.sha, local_dir=directory, ignore_patterns=UNUSED, token=token
    )
    wanted = filter_repo_objects(sizes, ignore_patterns=UNUSED)
    if lacking := incomplete(directory, {name: sizes[name] for name in wanted}):
        sys.exit(f"{repository} is not whole: {', '.join(lacking[:5])}. Run again.")


def main(directory, repository, revision):
    try:
        download(directory, repository, revision, read_token())
    except GatedRepoError:
        sys.exit(
            f"the hub refused {repository}: it is gated. Accept its licence with the account "
            "whose token the host fetches, or set hf_token_source."
        )
    except RepositoryNotFoundError:
        sys.exit(f"the hub has no {repository}, or the token may not see it: check model_source")
    except Exception as error:  # each release's HTTP library raises its own
        reason = f"{type(error).__name__}: {error}"
        sys.exit(f"downloading {repository} broke off: {reason}. Run again: it goes on from there.")


main(*sys.argv[1:])
