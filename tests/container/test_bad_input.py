"""What goes wrong on a host, told with its cause; the next run converges all the same."""

from tests.container.stand_in import StandIn

SITE = "/opt/pytorch/lib/python3.11/site-packages"
SOURCE = "Ensure the tree is vLLM 0.32.0 with our patches"


def test_a_tag_that_does_not_exist(host: StandIn) -> None:
    run = host.converge(vllm_version="0.32.9", allow_unlisted_version=True, device="cpu")
    assert run.code != 0
    assert "0.32.9 has no CPU kernels to install: use one of 0.32.0" in run.log
    assert host.plan().planned == ()


def test_an_upstream_without_the_tag_leaves_the_tree_alone(host: StandIn) -> None:
    before = host.run("git -c safe.directory='*' -C /opt/vllm-g5g/src rev-parse HEAD")
    host.run("rm -rf /tmp/empty.git && git init --quiet --bare /tmp/empty.git")
    host.run("git -C /opt/vllm-g5g/src tag -d v0.32.0")
    run = host.converge(vllm_repository="file:///tmp/empty.git")
    assert run.code != 0
    assert "tag v0.32.0 does not exist in file:///tmp/empty.git" in run.log
    assert host.run("git -C /opt/vllm-g5g/src rev-parse HEAD") == before
    assert host.converge().changed == (SOURCE,)


def test_without_the_cpu_patch_health_is_fine_and_the_deploy_fails_with_the_reason(
    host: StandIn,
) -> None:
    """0.32.0 as released: /health is 200, and the first chat completion kills the engine."""
    run = host.converge(skip_patches=["cpu-slot-mapping.patch"])
    assert run.code != 0
    assert "Boolean value of Tensor with more than one value is ambiguous" in run.log
    assert "it applies cpu-slot-mapping.patch" in run.log
    mended = host.converge()
    assert mended.code == 0
    assert "nothing is compiled again" in mended.log
    assert "taking over 1 changed Python files" in host.run("cat /var/log/vllm-g5g/build.log")
    assert host.plan().planned == ()


def test_another_torch_than_the_images_is_refused_in_the_dry_run(host: StandIn) -> None:
    """What `pip install --upgrade torch` leaves: all that is compiled was made for another."""
    ours, other = (f"{SITE}/torch-{version}.dist-info" for version in ("2.13.0+cpu", "2.12.0"))
    host.run(f"cp -a {ours} /tmp/torch && mv {ours} {other}")
    host.run(f"sed -i 's/^Version: .*/Version: 2.12.0/' {other}/METADATA")
    try:
        run = host.plan()
    finally:
        host.run(f"rm -r {other} && mv /tmp/torch {ours}")
    assert run.code != 0
    assert "Found torch 2.12.0" in run.log
    assert "wanted 2.13.0" in run.log
    assert host.plan().clean


def test_what_is_refused_late_is_refused_before_anything_is_changed(host: StandIn) -> None:
    early, late = "/var/lib/vllm-g5g/models", "/usr/local/lib/vllm-g5g/bench/plan.py"
    host.run(f"chmod 750 {early} && mv {late} /tmp/plan.py && mkdir {late}")
    try:
        run = host.converge()
        mode = host.run(f"stat --format %a {early}")
    finally:
        host.run(f"rmdir {late} && mv /tmp/plan.py {late}")
    assert run.code != 0
    assert f"cannot manage {late}: found a directory, wanted a file" in run.log
    assert f"{early} has mode 750, wanted 755" in run.log
    assert mode == "750"
    assert host.converge().changed == ("Ensure the directories exist",)


def test_a_misspelt_knob_is_an_error_before_anything_is_run(host: StandIn) -> None:
    run = host.plan(max_model_length=1024)
    assert run.code != 0
    assert "unknown knob max_model_length: did you mean max_model_len?" in run.log
