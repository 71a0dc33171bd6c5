"""The stages host, cuda and rust alone, in deploy.py's order: what a build stands on."""

from pyinfra import host

from operations import account, apt, cuda_repository, cuda_toolkit, driver, rust, swap

data = host.data.dict()
repository = cuda_repository.Repository(
    base_url=data["cuda_repository"],
    keyring_version=data["cuda_keyring_version"],
    keyring_sha256=data["cuda_keyring_sha256"],
    fingerprint=data["cuda_key_fingerprint"],
)
toolkit = cuda_toolkit.Toolkit(data["cuda_toolkit"], needs_gib=1)

cuda_repository.present(name="repository", repository=repository, toolkit=toolkit)
apt.packages(name="packages", names=data["packages"])
swap.present(name="swap", path=data["swap_file"], size_gib=1, below_gib=data["swap_below_gib"])
account.present(name="account", user="vllm", home="/var/lib/vllm-g5g")
driver.held(name="driver")
cuda_toolkit.present(name="toolkit", toolkit=toolkit)
rust.present(
    name="rust",
    home="/opt/vllm-g5g/rust",
    toolchain=data["rust_toolchain"],
    rustup=rust.Rustup(data["rustup_version"], data["rustup_sha256"], data["rustup_archive"]),
)
