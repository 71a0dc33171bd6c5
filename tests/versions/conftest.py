from collections.abc import Iterator

import pytest

from tests.versions.released import Released, sources


@pytest.fixture(scope="session")
def all_released() -> Iterator[dict[str, Released]]:
    with sources() as every:
        yield every


@pytest.fixture
def released(number: str, all_released: dict[str, Released]) -> Released:
    """The source of the version that the test is parametrized with."""
    return all_released[number]
