"""Which git repositories the cmake files of a vLLM tree fetch, and how a build is handed them.

FetchContent clones each of them, history and all, in the middle of a build, and one clone that
fails is a failed build. What lies on the disk already is handed over in one of two ways:

- A declared source (FetchContent_Declare) by cmake's own FETCHCONTENT_SOURCE_DIR_<NAME>, which
  replaces the download and nothing else. vLLM's cmake files read a variable of their own for each,
  but that may change the build: under VLLM_FLASH_ATTN_SRC_DIR the package of FlashAttention 4 is
  installed as a link, its imports not rewritten, and TRITON_KERNELS_SRC_DIR names a folder within
  what is fetched. [source, vLLM 0.27.1 to 0.33.0]
- A source that is populated at once (FetchContent_Populate with its details, as DeepGEMM is) by
  the variable that its file reads: cmake ignores its own one there. [source, cmake 4.4.5]
"""

import glob
import os
import re
from dataclasses import dataclass

EXTERNAL = "cmake/external_projects/"
# What a vLLM build for an NVIDIA GPU has these set to; other conditions are taken both ways.
KNOWN = {"VLLM_TARGET_DEVICE": "cuda", "VLLM_GPU_LANG": "CUDA"}
COMMIT = re.compile(r"[0-9a-f]{40}")
TAG = re.compile(r"v?\d[\w.+-]*")
TOKEN = re.compile(
    r"""
    \#\[(?P<hashes>=*)\[ .*? \](?P=hashes)\]    # a bracket comment
    | \#[^\n]*
    | "(?:[^"\\]|\\.)*"
    | \[(?P<equals>=*)\[ .*? \](?P=equals)\]    # a bracket argument
    | [()]
    | (?:[^\s()"\#\\]|\\.)+
    """,
    re.DOTALL | re.VERBOSE,
)
KEYWORD = re.compile(r"[A-Z]+(_[A-Z0-9]+)+")  # of a declaration: GIT_TAG, SOURCE_SUBDIR
# With the source handed over, cmake runs none of these.
SKIPPED = ("DOWNLOAD_COMMAND", "PATCH_COMMAND", "UPDATE_COMMAND")


@dataclass(frozen=True)
class Source:
    """A git repository at the revision that the tree pins.

    + name: what FetchContent calls it
    + revision: a commit (40 hex digits) or a tag
    + submodules: paths of the ones that cmake fetches; None for all that there are
    + variable: of the environment, that its cmake file reads; None where it is declared
    + obstacle: why cmake must fetch it itself; "" where it can be handed over
    """

    name: str
    url: str
    revision: str
    submodules: "tuple[str, ...] | None"
    variable: "str | None"
    obstacle: str


def sources_of(tree):
    """Return the sources that the build of this tree fetches, in the order in which it does."""
    with open(os.path.join(tree, "CMakeLists.txt")) as file:
        main = file.read()
    included = {}
    for path in glob.glob(os.path.join(glob.escape(tree), EXTERNAL, "*.cmake")):
        with open(path) as file:
            included[EXTERNAL + os.path.basename(path)] = file.read()
    return sources_in(main, included)


def sources_in(text, included=None):
    """Return the sources of a cmake file, given what it may include by path.

    Where one is declared twice, the first counts, as for cmake.
    """
    found = {}
    for source in _walk(text, included or {}, dict(KNOWN)):
        found.setdefault(source.name.lower(), source)
    return list(found.values())


def handed_over(places, cmake_args=""):
    """Return the variables of the environment that make a build take each source from its place.

    `places` maps sources to paths without white space, at which vLLM's setup.py splits CMAKE_ARGS;
    `cmake_args` is what CMAKE_ARGS held.
    """
    options = [cmake_args] if cmake_args else []
    options += [
        f"-DFETCHCONTENT_SOURCE_DIR_{source.name.upper()}={path}"
        for source, path in places.items()
        if source.variable is None
    ]
    variables = {source.variable: path for source, path in places.items() if source.variable}
    return {**variables, **({"CMAKE_ARGS": " ".join(options)} if options else {})}


def commands(text):
    """Yield each command of a cmake file: its name in lower case and its arguments, as written."""
    name, arguments, depth = "", [], 0
    for match in TOKEN.finditer(text):
        token = match[0]
        if token.startswith("#"):
            continue
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == ")" and depth <= 0:
            yield name.lower(), arguments
            name, arguments, depth = "", [], 0
        elif depth == 0:
            name = token
        elif token != "(" or depth > 1:
            arguments.append(token)


def _walk(text, included, variables):
    """Yield the sources of a file and of those that it includes, branch by branch."""
    branches, overrides = [], []
    for name, arguments in commands(text):
        if name in ("if", "elseif", "else", "endif"):
            _branch(branches, name, arguments)
            overrides += re.findall(r"ENV\{(\w+_SRC_DIR)\}", " ".join(arguments))
        elif not all(state in ("taken", "unknown") for state in branches):
            continue
        elif name == "set" and arguments:
            variables[arguments[0]] = ";".join(_values(_settings(arguments), variables))
        elif name == "include" and arguments and arguments[0] in included:
            yield from _walk(included[arguments[0]], included, variables)
        elif name in ("fetchcontent_declare", "fetchcontent_populate"):
            options = _options(arguments, variables)
            if "GIT_REPOSITORY" in options:
                own = overrides[-1] if overrides else None
                yield _source(arguments[0], options, name == "fetchcontent_declare", own)


def _branch(branches, name, arguments):
    """Bring the stack of open if() up to date: each is taken, unknown, untaken or over."""
    if name == "if":
        branches.append(_truth(arguments))
    elif name == "endif" and branches:
        branches.pop()
    elif branches and branches[-1] in ("taken", "over"):
        branches[-1] = "over"
    elif branches and branches[-1] == "untaken":
        branches[-1] = "taken" if name == "else" else _truth(arguments)


def _truth(arguments):
    if len(arguments) == 3 and arguments[0] in KNOWN and arguments[1] == "STREQUAL":
        return "taken" if KNOWN[arguments[0]] == arguments[2].strip('"') else "untaken"
    return "unknown"


def _settings(arguments):
    """Return the values of a set(), less where it stores them."""
    values = arguments[1:]
    ends = [values.index(word) for word in ("CACHE", "PARENT_SCOPE") if word in values]
    return values[: min(ends, default=len(values))]


def _values(arguments, variables):
    """Return the arguments with variables put in; one that is not known stays as it is written."""
    values = []
    for argument in arguments:
        text = re.sub(
            r"\$\{(\w+)\}", lambda match: variables.get(match[1], match[0]), argument.strip('"')
        )
        values += [text] if argument.startswith('"') else text.split(";")
    return values


def _options(arguments, variables):
    """Return keyword -> values of a declaration."""
    options, last = {}, []
    for argument in arguments[1:]:
        if KEYWORD.fullmatch(argument):
            last = options.setdefault(argument, [])
        else:
            last += _values([argument], variables)
    return options


def _source(name, options, declared, own):
    revision = "".join(options.get("GIT_TAG", []))
    return Source(
        name=name,
        url="".join(options["GIT_REPOSITORY"]),
        revision=revision,
        submodules=_submodules(options),
        variable=None if declared else own,
        obstacle=_obstacle(options, revision, declared or own),
    )


def _submodules(options):
    """Return the paths of the submodules; None for all, () for none (CMP0097, cmake 3.16)."""
    if "GIT_SUBMODULES" not in options:
        return None
    return tuple(path for path in options["GIT_SUBMODULES"] if path)


def _obstacle(options, revision, can_be_handed_over):
    if not (COMMIT.fullmatch(revision) or TAG.fullmatch(revision)):
        return f"its revision {revision!r} is neither a commit nor a tag"
    if "${" in "".join(options["GIT_REPOSITORY"]):
        return f"its repository {''.join(options['GIT_REPOSITORY'])} is known to cmake alone"
    if skipped := [word for word in SKIPPED if any(options.get(word, ()))]:
        return f"its {skipped[0]} would not run"
    return "" if can_be_handed_over else "its cmake file reads no variable for it"
