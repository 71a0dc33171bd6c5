"""Download a checkpoint from the model hub. Run by the serving interpreter, which has the library.

Arguments: the directory to write into, the repository, its revision. A token comes in the variable
HF_TOKEN or not at all. What is there already is not downloaded again.
"""

import sys

from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

# Formats that vLLM does not load; they would double the download.
UNUSED = ["*.gguf", "*.pth", "*.bin", "original/*", "onnx/*"]


def main(directory, repository, revision):
    try:
        snapshot_download(
            repository, revision=revision, local_dir=directory, ignore_patterns=UNUSED
        )
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
