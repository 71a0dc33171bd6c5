"""Download a checkpoint from the model hub. Run by the serving interpreter, which has the library.

Arguments: the directory to write into, the repository, its revision. Standard input: a token, or
nothing. What is there already is not downloaded again.
"""

import ctypes
import sys

from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

# Formats that vLLM does not load; they would double the download.
UNUSED = ["*.gguf", "*.pth", "*.bin", "original/*", "onnx/*"]
PR_SET_DUMPABLE = 4  # linux/prctl.h


def read_token():
    """Return the token, or False for none, once no other process of this user can look in here."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    return sys.stdin.read().strip() or False


def main(directory, repository, revision):
    try:
        snapshot_download(
            repository, revision=revision, local_dir=directory, ignore_patterns=UNUSED,
            token=read_token(),
        )  # fmt: skip
    except GatedRepoError:
        sys.exit(
            f"the hub refused {repository}: it is gated. Accept its licence with the account "
            "whose token the host fetches, or set hf_token_source."
        )
    except RepositoryNotFoundError:
        sys.exit(f"the hub has no {repository}, or the token may not see it: check model_source")
    except (HfHubHTTPError, OSError) as error:
        sys.exit(f"downloading {repository} broke off: {error}. Run again: it goes on from there.")


main(*sys.argv[1:])
