"""The EC2 instances that `pyinfra @local provision.py` brings about.

pyinfra reads this file for the host `@local` alone. Override a knob for one run with `--data
knob=value`; keep several fleets as folders with a file of this name, and pick one with
`--group-data FOLDER`. Region and credentials come from boto3's own chain (AWS_DEFAULT_REGION,
AWS_PROFILE).
"""

# The tag Name that all instances of this fleet bear.
name = "vllm-g5g"

# How many instances of that name there should be. Lowering it terminates the youngest, and wants
# the same confirmation as state = "absent".
count = 1

# running, stopped, or absent. A one-time spot instance cannot be stopped, only terminated.
state = "running"

# Any type of one GPU that group_data has a file for. vCPUs count against the quota; below 16 GiB
# of memory the checkpoint needs swap.
type = "g5g.2xlarge"

# spot, on-demand, or spot-then-on-demand. Spot costs about a third to a half, and may be taken
# back with two minutes' notice; its quota is 0 in a new account.
market = "spot-then-on-demand"

# How often all zones are walked in one market before the next market, or giving up. Between two
# rounds lie 15 s, then twice as long each time, up to 2 minutes.
rounds = 4

# Where: subnets by id, or the default subnets of these zones. Neither: every default subnet.
subnets: list[str] = []
zones: list[str] = []

# Security groups by id, of the subnets' own VPC. They need no inbound rule. Empty: the VPC's own.
security_groups: list[str] = []

# The instance profile whose role Systems Manager and the secret need (docs/iam/instance.json).
instance_profile = "vllm-g5g"

# Root volume in GiB, gp3, encrypted. The toolkit takes about 8, a build 15 to 20, the checkpoint
# 10, on top of the image's own.
volume_gib = 150

# The public parameter that names the newest image. {architecture} becomes arm64 or x86_64, as the
# type has it.
image_parameter = (
    "/aws/service/deeplearning/ami/{architecture}"
    "/oss-nvidia-driver-gpu-pytorch-2.12-ubuntu-24.04/latest/ami-id"
)

# Where that parameter does not exist: the newest image of Amazon's whose name matches. Keep these
# narrow: ARM64 images without the NVIDIA driver exist, and boot on a g5g without a GPU.
image_names = {
    "arm64": "Deep Learning ARM64 AMI OSS Nvidia Driver GPU PyTorch 2.12 (Ubuntu 24.04) *",
    "x86_64": "Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.12 (Ubuntu 24.04) *",
}

# An image of our own, made by bake.py, instead: "latest", or the digest of its build, of which the
# first eight digits will do.
baked = None

# What `shutdown` on the host does: stop, or terminate. One-time spot always terminates.
shutdown = "stop"

# Seconds a new instance may take until Systems Manager reaches it. A first boot takes two to four
# minutes.
online_within_s = 900

# Replace running instances that differ from the knobs above in what cannot be changed in place.
# The new one comes first; the old one, and what was built on it, is then terminated.
replace = False

# The name again, to terminate: `--data confirm=NAME`.
confirm = None
