"""`transformers serve`, from PyPI: the second opinion on a figure, on the same checkpoint.

It has no API key, no /metrics and no limit on the context. It refuses fields that it does not know
(422), so `ignore_eos` must not be sent; `generation_config` replaces the checkpoint's own, and a
minimum of tokens there keeps an answer from ending. [source: transformers 5.19.0]
"""

from desired import serving
from desired.serving import Server
from runtimes.runtime import Runtime


def argv(server: Server) -> list[str]:
    """Return the whole command line; continuous batching is left off, as it is by default."""
    return [
        *(server.python, "-P", "-m", "transformers.cli.transformers", "serve", server.model),
        *("--host", server.address, "--port", str(server.port)),
        *("--device", "cuda:0" if server.gpus else "cpu", "--dtype", server.dtype),
    ]


def environment(server: Server) -> dict[str, str]:
    """Return the variables of the environment file: those of vLLM that are not vLLM's own."""
    shared = serving.environment(server)
    return {name: value for name, value in shared.items() if not name.startswith("VLLM_")}


RUNTIME = Runtime(
    name="transformers",
    title="transformers serve",
    documentation="https://huggingface.co/docs/transformers/main/en/serving",
    unit="transformers.service",
    distribution="transformers",
    argv=argv,
    environment=environment,
    # The path that it was started with, and nothing else; it answers as PATH@main. [measured]
    request_model=lambda server: server.model,
    full_length={"generation_config": '{"min_new_tokens": $tokens, "do_sample": false}'},
    lock="transformers-serve.txt",
    takes_api_key=False,
)
