"""Bring EC2 to what group_data/@local.py asks for: `pyinfra @local provision.py`.

Instances are found by the tags ManagedBy and Name, and nothing else is ever touched. `--dry` asks
AWS and changes nothing; a second run changes nothing either.
"""

from datetime import UTC, datetime

from pyinfra import host, inventory, logger, state

from desired.fleet import Fleet
from facts.aws import Aws
from facts.ec2 import instances
from facts.ec2_price import spending
from facts.ec2_survey import survey
from operations import ec2
from operations.ec2_plan import consent_given
from operations.ec2_report import tell_found, tell_survey, warn

fleet = Fleet.from_data(host.data.dict(), inventory.get_override_data())
aws = Aws()
now = datetime.now(UTC)
found = instances(aws, name=fleet.name)
prices = spending(aws, found, now)
# With -y pyinfra looks for no changes first, which is how a deploy file can tell.
consent = consent_given(fleet, yes=not state.check_for_changes)

for line in tell_found(aws.region, fleet.name, found, prices, now):
    host.log(line)
for line in prices.warnings:
    host.log(f"no costs: {line}", log_func=logger.warning)

if fleet.state == "running":
    seen = survey(aws, fleet, found)
    for line in tell_survey(seen, fleet):
        host.log(line)
    for line in warn(found, seen, fleet):
        host.log(line, log_func=logger.warning)
    ec2.running(
        name=f"Ensure {fleet.count} {fleet.type} called {fleet.name} run and are reached",
        aws=aws,
        fleet=fleet,
        found=found,
        seen=seen,
        consent=consent,
    )

if fleet.state == "stopped":
    ec2.stopped(
        name=f"Ensure no instance called {fleet.name} runs",
        aws=aws,
        found=found,
    )

if fleet.state == "absent":
    ec2.absent(
        name=f"Ensure no instance is called {fleet.name}",
        aws=aws,
        fleet=fleet,
        found=found,
        consent=consent,
    )
