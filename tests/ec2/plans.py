"""Plans in short."""

from operations.ec2_plan import Launch, Plan, Planned


def deeds(plan: Plan) -> list[object]:
    """Return the deeds of a plan; a launch as its count alone."""
    return [
        ("launch", entry.deed.count) if isinstance(entry.deed, Launch) else entry.deed
        for entry in plan
        if isinstance(entry, Planned)
    ]
