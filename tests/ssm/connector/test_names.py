"""What a name in the inventory stands for."""

import pytest
from pyinfra.api.exceptions import InventoryError

from pyinfra_ssm.connector import SSMConnector
from pyinfra_ssm.emulator import Instance
from tests.ssm.conftest import Emulate
from tests.ssm.connector.conftest import NAME


def test_an_instance_is_its_own_name() -> None:
    assert list(SSMConnector.make_names_data("mi-0123456789abcdef0")) == [
        ("@ssm/mi-0123456789abcdef0", {"ssm_target": "mi-0123456789abcdef0"}, ["@ssm"])
    ]


@pytest.mark.parametrize(
    "name", [None, "", "web-1", "i-", "i-0 0", "I-0", "i-0/", "tag:", "tag:Role", "tag:=x"]
)
def test_what_names_no_host_says_how_to_write_it(name: str) -> None:
    with pytest.raises(InventoryError, match="Write @ssm/"):
        list(SSMConnector.make_names_data(name))


FLEET = [
    Instance(tags={"Role": "inference"}),
    Instance(instance_id="i-0000000000000000a", tags={"Role": "inference"}, state="stopped"),
    Instance(instance_id="i-0000000000000000b", tags={"Role": "inference"}, ping="ConnectionLost"),
    Instance(instance_id="i-0000000000000000c", tags={"Role": "build"}),
    Instance(instance_id="i-0000000000000000d", tags={"Role": "inference"}),
]


def test_a_tag_names_the_hosts_that_can_be_reached_page_after_page(
    emulate: Emulate, caplog: pytest.LogCaptureFixture
) -> None:
    emulate(FLEET, page_size=1)
    names = [name for name, _, _ in SSMConnector.make_names_data("tag:Role=inference")]
    assert names == ["@ssm/i-0000000000000000d", NAME]
    assert "Skipped i-0000000000000000a: it is stopped" in caplog.text
    assert "Skipped i-0000000000000000b: its agent is ConnectionLost" in caplog.text


def test_a_tag_that_nobody_has_says_what_to_check(emulate: Emulate) -> None:
    emulate()
    with pytest.raises(InventoryError, match="matches no instance"):
        list(SSMConnector.make_names_data("tag:Role=nobody"))
