"""The model stage alone: a checkpoint that is downloaded."""

from pyinfra import host

from operations import model

data = host.data.dict()

model.present(
    name="checkpoint",
    producer=model.downloaded(
        data["repository"], data["revision"], data["token_file"], {"HF_ENDPOINT": data["hub"]}
    ),
    directory=data["directory"],
    python="/opt/pytorch/bin/python3",
    user="vllm",
    log=f"{data['directory']}.log",
)
