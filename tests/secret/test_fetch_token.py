"""The token script against a metadata service and moto's Secrets Manager, both on loopback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.token import fetch_token
from files.token.fetch_token import FetchError, checked_token
from tests.secret.conftest import NAME, TOKEN, refused
from tests.secret.secrets_manager import REGION
from tests.secret.systemd_environment import parse


def test_the_token_is_written_for_root_alone(vault, host, capsys):
    vault.create_secret(Name=NAME, SecretString=f"  {TOKEN}\r\n")
    assert host.fetch() == 0
    assert parse(host.output.read_text()) == {"HF_TOKEN": TOKEN}
    assert host.output.read_text().startswith(f"# secretsmanager {REGION} {NAME}\n")
    assert host.output.stat().st_mode & 0o777 == 0o600
    assert host.output.parent.stat().st_mode & 0o777 == 0o700
    assert list(host.output.parent.iterdir()) == [host.output]
    said = capsys.readouterr()
    assert TOKEN not in said.out + said.err


def test_the_script_runs_by_itself_with_the_standard_library_alone(vault, host):
    vault.create_secret(Name=NAME, SecretString=TOKEN)
    script = Path(fetch_token.__file__)
    words = ["--region", REGION, "--secret-id", NAME, "--output", str(host.output)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"wrote {host.output} from secret {NAME} in {REGION}\n"
    assert parse(host.output.read_text()) == {"HF_TOKEN": TOKEN}


def test_a_replaced_token_replaces_the_file(vault, host):
    vault.create_secret(Name=NAME, SecretString="old")
    assert host.fetch() == 0
    vault.put_secret_value(SecretId=NAME, SecretString="new")
    assert host.fetch() == 0
    assert parse(host.output.read_text()) == {"HF_TOKEN": "new"}


def test_a_secret_that_is_missing(vault, host, capsys):
    assert "there is no such secret. Check hf_token_secret" in refused(host, capsys)


def test_a_binary_secret(vault, host, capsys):
    vault.create_secret(Name=NAME, SecretBinary=b"\x00\x01")
    assert "is binary. Store the token as its SecretString" in refused(host, capsys)


def test_a_secret_that_is_marked_for_deletion(vault, host, capsys):
    vault.create_secret(Name=NAME, SecretString=TOKEN)
    vault.delete_secret(SecretId=NAME, RecoveryWindowInDays=7)
    assert "restore-secret" in refused(host, capsys)


CONTENTS = {
    "blank": (" \n", "the secret is empty"),
    "two words": (f"Bearer {TOKEN}", "not one printable word"),
    "two lines": (f"{TOKEN}\n{TOKEN}", "not one printable word"),
    "json": (json.dumps({"HF_TOKEN": TOKEN}), "not one printable word"),
    "compact json": ('{"HF_TOKEN":"' + TOKEN + '"}', "looks like JSON"),
    "a letter that only looks right": ("hf_Ex\u0430mple", "not one printable word"),
}


@pytest.mark.parametrize(("content", "said"), CONTENTS.values(), ids=CONTENTS)
def test_what_is_no_token_is_refused_and_not_shown(vault, host, capsys, content, said):
    vault.create_secret(Name=NAME, SecretString=content)
    line = refused(host, capsys)
    assert said in line
    assert TOKEN not in line


@pytest.mark.parametrize(("words", "status"), [(["--keep-last"], 0), ([], 1)])
def test_the_last_good_token_is_kept_only_where_asked_for(vault, host, words, status):
    vault.create_secret(Name=NAME, SecretString=TOKEN)
    assert host.fetch() == 0
    vault.delete_secret(SecretId=NAME, ForceDeleteWithoutRecovery=True)
    assert host.fetch(*words) == status
    assert host.output.exists() is bool(words)


def test_the_first_token_cannot_be_kept_from_nowhere(vault, host):
    assert host.fetch("--keep-last") == 1


@given(st.text())
def test_any_secret_is_one_word_or_a_clear_refusal(text):
    try:
        token = checked_token(text)
    except FetchError:
        return
    assert token == text.strip()
    assert token.isascii()
    assert token.isprintable()
    assert not set(token) & set(" \t\r\n")
