"""Which machine image to launch from: the newest GPU image of Amazon's, or one of our own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from desired.fleet import MANAGED_BY
from facts.aws import Aws, AwsError

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef, ImageTypeDef

BUILD = "Build"  # the tag with the digest of the build that an image of ours holds


@dataclass(frozen=True)
class Image:
    """A machine image. `source` says which one was asked for, and stands in the tag Image."""

    id: str
    name: str
    description: str
    architecture: str
    state: str
    created: str  # ISO 8601
    root_device: str
    root_gib: int
    build: str  # the tag Build; empty for an image that is not ours
    source: str


def parse_image(raw: "ImageTypeDef", source: str) -> Image:
    """Return the image that one entry of DescribeImages describes."""
    tags = {tag.get("Key", ""): tag.get("Value", "") for tag in raw.get("Tags", [])}
    root = raw.get("RootDeviceName", "")
    sizes = [
        mapping.get("Ebs", {}).get("VolumeSize", 0)
        for mapping in raw.get("BlockDeviceMappings", [])
        if mapping.get("DeviceName") == root
    ]
    build = tags.get(BUILD, "")
    return Image(
        id=raw["ImageId"],
        name=raw.get("Name", ""),
        description=raw.get("Description", ""),
        architecture=raw.get("Architecture", ""),
        state=raw.get("State", ""),
        created=raw.get("CreationDate", ""),
        root_device=root,
        root_gib=sizes[0] if sizes else 0,
        build=build,
        source=f"build:{build}" if build else source,
    )


def misfit(image: Image, architecture: str, volume_gib: int) -> str:
    """Return why this image cannot be launched as asked, and what to do; empty if it can."""
    what = f"the image {image.id} ({image.name or 'no name'})"
    if image.architecture != architecture:
        return (
            f"{what} is for {image.architecture}, the instance type is {architecture}: "
            "set image_parameter, image_names or type"
        )
    # An image of our own was taken from a host whose GPU had served.
    words = f"{image.name} {image.description}".casefold()
    if not image.build and "nvidia driver" not in words:
        return (
            f"{what} does not say that it has the NVIDIA driver; without it the instance boots "
            "and has no GPU: set image_parameter or image_names"
        )
    if image.state != "available":
        return (
            f"{what} is {image.state or 'in no known state'}, not available: wait or pick another"
        )
    if image.root_gib > volume_gib:
        return f"{what} needs {image.root_gib} GiB, volume_gib is {volume_gib}: raise volume_gib"
    return ""


def public_image(aws: Aws, *, parameter: str, name: str) -> Image:
    """Return the image that a public parameter names, or the newest of Amazon's called `name`.

    The name counts only where the parameter does not exist: AWS renames them with each release.
    """
    try:
        with aws.asking(f"read the parameter {parameter}"):
            answer = aws.ssm.get_parameter(Name=parameter)
    except AwsError as error:
        if error.code != "ParameterNotFound":
            raise
        found = _images(aws, parameter, ["amazon"], [{"Name": "name", "Values": [name]}])
        wanted = f"no parameter {parameter}, and no image of Amazon's called {name}"
    else:
        id = answer["Parameter"]["Value"]
        found = _images(aws, parameter, [], [{"Name": "image-id", "Values": [id]}])
        wanted = f"no image {id}, which the parameter {parameter} names"
    if not found:
        raise AwsError(
            f"[{aws.region}] cannot find an image: there is {wanted}. "
            "Set image_parameter or image_names, or take another region."
        )
    return found[0]


def baked_images(aws: Aws, *, build: str | None = None) -> list[Image]:
    """Return our own images, newest first; of the builds whose digest begins with `build`."""
    filters: list[FilterTypeDef] = [{"Name": "tag:ManagedBy", "Values": [MANAGED_BY]}]
    if build is not None:
        filters.append({"Name": f"tag:{BUILD}", "Values": [f"{build}*"]})
    return _images(aws, "", ["self"], filters)


def baked_image(aws: Aws, *, baked: str, architecture: str) -> Image:
    """Return our newest image for `architecture`; `baked` is "latest" or how a digest begins."""
    found = baked_images(aws, build=None if baked == "latest" else baked)
    fitting = [image for image in found if image.architecture == architecture]
    if not fitting:
        raise AwsError(
            f"[{aws.region}] cannot use a baked image: none of ours is for {architecture} and "
            f"build {baked}. Make one with `pyinfra inventory.py bake.py`, or leave baked = None."
        )
    return fitting[0]


def _images(
    aws: Aws, source: str, owners: list[str], filters: "list[FilterTypeDef]"
) -> list[Image]:
    """Return the images of these owners, or of anybody, that pass the filters; newest first."""
    with aws.asking("look for a machine image"):
        pages = aws.ec2.get_paginator("describe_images").paginate(Owners=owners, Filters=filters)
        found = [parse_image(raw, source) for page in pages for raw in page["Images"]]
    return sorted(found, key=lambda image: (image.created, image.id), reverse=True)
