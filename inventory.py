"""The hosts: our running EC2 instances, reached over Systems Manager.

pyinfra runs this file anew for each command. The instances are those with our tag ManagedBy in
the region of boto3's credential chain (AWS_DEFAULT_REGION, AWS_PROFILE). Each is in a group for its
hardware (`g5g`, `g4dn`, another family, or `cpu`), which picks its file in `group_data/`, and in
one for its tag Name, for `--limit`.
"""

from collections import defaultdict
from datetime import UTC, datetime

from pyinfra import logger
from pyinfra.api.exceptions import InventoryError

from desired.fleet import GROUPS
from facts.aws import Aws
from facts.ec2_hosts import accelerator, describe, listing, nothing_ready
from facts.ec2_price import spending

_aws = Aws()
_now = datetime.now(UTC)
_listed = listing(_aws)
_prices = spending(_aws, _listed.ready, _now)
_groups: dict[str, list[tuple[str, dict[str, str]]]] = defaultdict(list)

for _instance, _reason in _listed.skipped:
    logger.info(f"    skipped {_instance.id} ({_instance.name}): {_reason}")
for _warning in _prices.warnings:
    logger.warning(f"    no costs: {_warning}")
for _instance in _listed.ready:
    _line = describe(_instance, _prices, _now)
    logger.info(f"    found {_instance.id}: {_line}")
    _host = (f"@ssm/{_instance.id}", {"ssm_region": _aws.region, "ec2_instance": _line})
    _groups[accelerator(_instance.type)].append(_host)
    if _instance.name and _instance.name not in GROUPS:
        _groups[_instance.name].append(_host)
if not _listed.ready:
    raise InventoryError(nothing_ready(_listed))

globals().update(_groups)
