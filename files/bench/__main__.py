"""`python3 -m bench run|smoke|throughput|readiness|startup ...`: each prints what it found."""

import argparse
import sys

from . import harness, readiness, smoke, startup, throughput

COMMANDS = {
    "throughput": throughput,
    "readiness": readiness,
    "startup": startup,
    "smoke": smoke,
    "run": harness,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        module.add_arguments(commands.add_parser(name, help=summary))
    options = parser.parse_args(arguments)
    try:
        status: int = COMMANDS[options.command].main(options)
        return status
    except OSError as error:
        print(f"{options.command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
