"""Trees to prove things on: patched where they are, wherever that is."""

import subprocess
from pathlib import Path

import pytest

from upkeep.trees import PatchRefused, apply

PATCH = """\
Description: Greet
---
diff --git a/greeting b/greeting
--- a/greeting
+++ b/greeting
@@ -1 +1 @@
-hello
+good morning
"""


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "greet.patch"
    path.write_text(PATCH)
    return path


@pytest.fixture(params=["outside of any repository", "inside another repository"])
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree, named by a path relative to where the caller is."""
    if request.param == "inside another repository":
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "tree").mkdir()
    monkeypatch.chdir(tmp_path)
    return Path("tree")


def test_a_patch_is_applied(tree: Path, patch: Path) -> None:
    (tree / "greeting").write_text("hello\n")
    apply(tree, patch)
    assert (tree / "greeting").read_text() == "good morning\n"


def test_a_patch_that_does_not_apply_is_named(tree: Path, patch: Path) -> None:
    (tree / "greeting").write_text("good evening\n")
    with pytest.raises(PatchRefused, match=r"greet\.patch does not apply to tree: .*greeting:1"):
        apply(tree, patch)
    assert (tree / "greeting").read_text() == "good evening\n"
