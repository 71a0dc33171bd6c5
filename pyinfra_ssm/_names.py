"""What comes after @ssm/ in the name of a host."""

import re

from pyinfra import logger
from pyinfra.api.exceptions import InventoryError

from pyinfra_ssm import targets
from pyinfra_ssm._accounts import account_of
from pyinfra_ssm._errors import SSMError

_ID = re.compile("m?i-[0-9a-f]+")


def instance_ids(name: str | None) -> list[str]:
    """Return the instances that a name stands for; raises InventoryError."""
    if name and name.startswith("tag:"):
        return _tagged(name.removeprefix("tag:"))
    if name and _ID.fullmatch(name):
        return [name]
    raise InventoryError(
        f"@ssm/{name or ''} names no host. Write @ssm/i-..., @ssm/mi-... or @ssm/tag:Key=Value."
    )


def _tagged(tag: str) -> list[str]:
    """Return the ids of the reachable instances with a tag; say which are skipped, and why."""
    key, _, value = tag.partition("=")
    if not key or not value:
        raise InventoryError(f"@ssm/tag:{tag} has no value. Write @ssm/tag:Key=Value.")
    try:
        found = targets.find(account_of(None, None), {key: value})
    except SSMError as error:
        raise InventoryError(f"@ssm/tag:{tag} could not be looked up: {error}") from error
    for instance in found:
        if instance.unreachable:
            logger.warning(f"Skipped {instance.instance_id}: {instance.unreachable}")
    ids = [instance.instance_id for instance in found if not instance.unreachable]
    if not ids:
        raise InventoryError(
            f"@ssm/tag:{tag} matches no instance that can be reached. Check the tag, the region "
            "and the credentials (AWS_DEFAULT_REGION, AWS_PROFILE)."
        )
    return ids
