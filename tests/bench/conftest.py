from collections.abc import Iterator

import pytest

from tests.bench.fake_server import FakeServer
from tests.loopback import serving


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving(FakeServer()) as fake:
        yield fake
