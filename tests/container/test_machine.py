"""What pip and apt of this machine say, read into what a container is given."""

import os
import string
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.container.machine import (
    apt_conf,
    apt_sources,
    pip_conf,
    pip_folders,
    pip_settings,
)

CONFIG_LIST = """\
:env:.find-links='/srv/wheels'
:env:.user-agent-user-data='x'
global.constraint='/etc/pip/constraints.txt'
global.find-links='/old/wheels'
install.no-binary='foo'
global.extra-index-url='file:///srv/a/simple https://mirror.example/simple'
"""


def test_the_environment_outranks_a_file_and_other_options_stay_out() -> None:
    assert pip_settings(CONFIG_LIST) == {
        "find-links": "/srv/wheels",
        "constraint": "/etc/pip/constraints.txt",
        "extra-index-url": "file:///srv/a/simple https://mirror.example/simple",
    }


@given(st.dictionaries(st.sampled_from(["index-url", "find-links", "cert"]), st.text()))
def test_settings_are_read_back_as_pip_prints_them(settings: dict[str, str]) -> None:
    single_line = {k: v for k, v in settings.items() if len(repr(v).splitlines()) == 1}
    listing = "\n".join(f"global.{option}={value!r}" for option, value in single_line.items())
    assert pip_settings(listing) == single_line


@given(st.text())
def test_any_listing_is_read_without_an_error(listing: str) -> None:
    pip_settings(listing)


def test_folders_are_those_that_exist_and_of_an_index_the_one_above(tmp_path: Path) -> None:
    index = tmp_path / "mirror" / "simple"
    index.mkdir(parents=True)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    settings = {
        "extra-index-url": f"file://{index} https://mirror.example/simple",
        "find-links": f"{wheels} {tmp_path}/gone relative/folder",
    }
    assert pip_folders(settings) == [index.parent, wheels]


def test_a_root_folder_is_never_lent() -> None:
    assert pip_folders({"index-url": "file:///simple", "find-links": "/"}) == []


def test_the_container_gets_the_settings_and_the_shared_cache() -> None:
    assert pip_conf({"find-links": "/srv/wheels"}) == (
        "[global]\ncache-dir = /var/cache/pip\nfind-links = /srv/wheels\n"
    )


def test_only_what_says_how_to_reach_a_mirror_is_taken_from_apt() -> None:
    dump = (
        'Acquire "";\n'
        'Acquire::http::Proxy "http://proxy.example:3128";\n'
        'Acquire::Check-Date "false";\n'
        'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n'
        'APT::Architecture "amd64";\n'
    )
    environment = {"http_proxy": "http://other:1", "https_proxy": "http://secure:2"}
    assert apt_conf(dump, environment).splitlines() == [
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::Check-Date "false";',
        'Acquire::https::Proxy "http://secure:2";',
    ]


def test_only_debians_own_mirrors_of_the_release_are_taken() -> None:
    targets = (
        "Debian http://mirror.example/debian/ bookworm main\n"
        "Debian http://mirror.example/debian/ bookworm main\n"
        "Debian http://mirror.example/debian-security/ bookworm-security main\n"
        "Docker https://download.example/linux bookworm stable\n"
        "Debian http://mirror.example/debian/ trixie main\n"
    )
    assert apt_sources(targets) == (
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/debian-security/ bookworm-security main",
    )


@given(st.text(alphabet=string.printable))
def test_any_target_list_is_read_without_an_error(targets: str) -> None:
    apt_sources(targets)
    apt_conf(targets, os.environ)
