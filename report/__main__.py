"""`python -m report page|table|compare|schema`: pages, Markdown, runs side by side, the schema."""

import argparse
import sys
from pathlib import Path

from report.archive import write_page
from report.compare import NotComparable, check_methods
from report.markdown import side_by_side, table
from report.schema import NotARun, json_schema, read


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="report", description=__doc__)
    parser.add_argument("what", choices=("page", "table", "compare", "schema"))
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN.json")
    parser.add_argument(
        "--anyway", action="store_true", help="compare runs of different methods, and say so"
    )
    options = parser.parse_intermixed_args(arguments)
    if not options.runs and options.what != "schema":
        parser.error(f"{options.what} needs at least one RUN.json")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    try:
        for text in _texts(options):
            print(text)
    except (NotARun, NotComparable, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    return 0


def _texts(options: argparse.Namespace) -> list[str]:
    if options.what == "schema":
        return [json_schema()]
    if options.what == "page":
        return [str(write_page(path)) for path in options.runs]
    runs = [read(path) for path in options.runs]
    if options.what == "table":
        return [table(run) for run in runs]
    try:
        check_methods(runs)
        return [side_by_side(runs, None)]
    except NotComparable as error:
        if not options.anyway:
            raise NotComparable(f"{error}. --anyway compares them all the same.") from error
        return [side_by_side(runs, str(error))]


if __name__ == "__main__":
    raise SystemExit(main())
