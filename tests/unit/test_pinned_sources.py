"""What the cmake files of a tree fetch, and how a build is handed it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.build.pinned_sources import Source, commands, handed_over, sources_in, sources_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
URL = "https://example.invalid/kernels.git"
DECLARED = Source("kernels", URL, COMMIT, None, None, "")


def declaration(*options: str, name: str = "kernels", revision: str = COMMIT) -> str:
    given = "\n  ".join((f"GIT_REPOSITORY {URL}", f"GIT_TAG {revision}", *options))
    return f"FetchContent_Declare(\n  {name}\n  {given})\n"


POPULATED = f"""
if (DEFINED ENV{{KERNELS_SRC_DIR}})
  set(KERNELS_SRC_DIR $ENV{{KERNELS_SRC_DIR}})
endif()
if(NOT KERNELS_SRC_DIR)
  set(_TAG "{COMMIT}")
  FetchContent_Populate(kernels GIT_REPOSITORY "{URL}" GIT_TAG "${{_TAG}}"
                        GIT_SUBMODULES "third-party/a" "third-party/b" GIT_PROGRESS TRUE)
endif()
"""
FILES = {
    "declared": (declaration("GIT_PROGRESS TRUE"), DECLARED),
    "at a tag that is a variable": (
        'set(REVISION "v4.7.1")\n' + declaration("GIT_SHALLOW TRUE", revision="${REVISION}"),
        replace(DECLARED, revision="v4.7.1"),
    ),
    "a variable that is cached": (
        f'set(REVISION {COMMIT} CACHE STRING "a revision")\n' + declaration(revision="${REVISION}"),
        DECLARED,
    ),
    "with some submodules": (
        declaration("GIT_SUBMODULES cutlass csrc/fmt", "GIT_PROGRESS TRUE"),
        replace(DECLARED, submodules=("cutlass", "csrc/fmt")),
    ),
    "with submodules in a list": (
        'set(WANTED "a;b")\n' + declaration("GIT_SUBMODULES ${WANTED}"),
        replace(DECLARED, submodules=("a", "b")),
    ),
    "with no submodules": (declaration('GIT_SUBMODULES ""'), replace(DECLARED, submodules=())),
    "populated at once": (
        POPULATED,
        replace(
            DECLARED, submodules=("third-party/a", "third-party/b"), variable="KERNELS_SRC_DIR"
        ),
    ),
    "with commands that do nothing": (
        declaration('CONFIGURE_COMMAND ""', 'PATCH_COMMAND ""', "BUILD_COMMAND make"),
        DECLARED,
    ),
    "with comments between": (
        f"#[[ FetchContent_Declare(a GIT_REPOSITORY b) ]] FetchContent_Declare(kernels # (\n"
        f"  GIT_REPOSITORY {URL} #[=[ ) ]] ]=] GIT_TAG {COMMIT} # GIT_TAG main\n)",
        DECLARED,
    ),
    "for another device": (
        f'if(VLLM_TARGET_DEVICE STREQUAL "rocm")\n{declaration(revision="v0")}'
        f'elseif(VLLM_TARGET_DEVICE STREQUAL "cuda")\n{declaration()}'
        f"else()\n{declaration(revision='v1')}endif()",
        DECLARED,
    ),
    "for all other devices": (
        f"if(VLLM_TARGET_DEVICE STREQUAL rocm)\n{declaration(revision='v0')}"
        f"else()\nif(WIN32)\nset(X 1)\nelse()\n{declaration()}endif()\nendif()",
        DECLARED,
    ),
    "declared twice": (declaration() + declaration(name="Kernels", revision="v2"), DECLARED),
}
LEFT = {
    "a branch": (declaration(revision="main"), "its revision 'main' is neither a commit nor a tag"),
    "no revision": (
        f"FetchContent_Declare(kernels GIT_REPOSITORY {URL})",
        "its revision '' is neither a commit nor a tag",
    ),
    "a revision that is computed": (
        declaration(revision="${X}"),
        "its revision '${X}' is neither a commit nor a tag",
    ),
    "a repository that is computed": (
        f"FetchContent_Declare(kernels GIT_REPOSITORY ${{X}} GIT_TAG {COMMIT})",
        "its repository ${X} is known to cmake alone",
    ),
    "patched": (
        declaration("PATCH_COMMAND patch -p1 -i x.patch"),
        "its PATCH_COMMAND would not run",
    ),
    "populated at once, no variable": (
        declaration().replace("Declare", "Populate"),
        "its cmake file reads no variable for it",
    ),
}


@pytest.mark.parametrize(("text", "source"), FILES.values(), ids=FILES)
def test_a_source_is_found(text: str, source: Source) -> None:
    assert sources_in(text) == [source]


@pytest.mark.parametrize(("text", "obstacle"), LEFT.values(), ids=LEFT)
def test_what_would_build_otherwise_is_left_to_cmake(text: str, obstacle: str) -> None:
    assert [source.obstacle for source in sources_in(text)] == [obstacle]


@pytest.mark.parametrize("text", ["FetchContent_Declare(a URL https://x/a.zip)", "set(", ")", ""])
def test_what_fetches_nothing_with_git_has_no_source(text: str) -> None:
    assert sources_in(text) == []


def test_only_what_the_tree_includes_is_fetched(tmp_path: Path) -> None:
    folder = tmp_path / "cmake" / "external_projects"
    folder.mkdir(parents=True)
    for name in ("used", "forgotten", "other_device"):
        (folder / f"{name}.cmake").write_text(declaration(name=name))
    (tmp_path / "CMakeLists.txt").write_text(
        "include(cmake/utils.cmake)\n"
        'if(VLLM_GPU_LANG STREQUAL "CUDA")\ninclude(cmake/external_projects/used.cmake)\n'
        "else()\ninclude(cmake/external_projects/other_device.cmake)\nendif()\n"
    )
    assert [source.name for source in sources_of(str(tmp_path))] == ["used"]


def test_each_source_is_handed_over_in_its_way() -> None:
    at_once = replace(DECLARED, name="other", variable="OTHER_SRC_DIR")
    dashed = replace(DECLARED, name="vllm-flash-attn")
    places = {DECLARED: "/s/kernels-1", at_once: "/s/other-2", dashed: "/s/flash-3"}
    assert handed_over(places, "-DA=1") == {
        "OTHER_SRC_DIR": "/s/other-2",
        "CMAKE_ARGS": "-DA=1 -DFETCHCONTENT_SOURCE_DIR_KERNELS=/s/kernels-1 "
        "-DFETCHCONTENT_SOURCE_DIR_VLLM-FLASH-ATTN=/s/flash-3",
    }
    assert handed_over({}) == {}


words = st.text("abcXYZ019_./${}-+:", min_size=1, max_size=12)
quoted = st.text(max_size=12).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True)
between = st.sampled_from([" ", "\n", "\t ", " # a (comment\n", " #[[ one ) of \n lines ]] "])


@given(
    st.lists(st.tuples(names, st.lists(words | quoted, max_size=4)), max_size=4),
    st.data(),
)
def test_commands_are_read_whatever_stands_between(
    written: Sequence[tuple[str, list[str]]], data: st.DataObject
) -> None:
    gap = lambda: data.draw(between)  # noqa: E731
    text = "".join(
        f"{gap()}{name.upper()}{gap()}({gap()}{''.join(a + gap() for a in arguments)})"
        for name, arguments in written
    )
    assert list(commands(text)) == [(name, arguments) for name, arguments in written]


@given(st.text('ab_ \n#()[]"\\${};=') | st.text())
def test_any_text_at_all_is_read(text: str) -> None:
    assert all(isinstance(source, Source) for source in sources_in(text))


fragments = st.sampled_from(
    [
        *("if(A)\n", 'if(VLLM_TARGET_DEVICE STREQUAL "cuda")\n', "elseif(B)\n", "else()\n"),
        *("endif()\n", "set(X v1)\n", "set(X)\n", declaration(), declaration(revision="${X}")),
        *("include(a)\n", "FetchContent_Declare()\n", POPULATED),
    ]
)


@given(st.lists(fragments).map("".join))
def test_files_that_are_not_well_formed_are_read(text: str) -> None:
    assert {source.url for source in sources_in(text)} <= {URL}
