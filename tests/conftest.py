"""What holds for every test."""

from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent

# A busy machine must not fail a property: tests do not time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each folder on one worker: its tests may share a container, a server or a cache."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        item.add_marker(pytest.mark.xdist_group(folder))
