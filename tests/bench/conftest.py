from collections.abc import Iterator

import pytest

from tests.bench.fake_server import FakeServer, serving


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as fake:
        yield fake
