"""`python -m tools.accept`: every figure that shoal promises, measured, one line each."""

import argparse
import sys

from tools.accept.figure import GATES
from tools.accept.runner import load_gates, run


def main(arguments: list[str] | None = None) -> int:
    """Measure what the command line chooses; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.accept", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="gates whose name starts so; may be repeated")  # fmt: skip
    parser.add_argument("--cheap", action="store_true", help="only what CI runs on each change")
    parser.add_argument("--list", action="store_true", help="print the names, measure nothing")
    options = parser.parse_args(arguments)
    load_gates()
    try:
        gates = GATES.chosen(options.only, cheap=options.cheap)
    except KeyError as unknown:
        parser.error(f"no gate starts with {unknown}; there are: {', '.join(GATES.by_name)}")
    if options.list:
        for gate in gates:
            print(f"{gate.name}{'  (cheap)' if gate.is_cheap else ''}")
        return 0
    return 0 if run(gates) else 1


if __name__ == "__main__":
    sys.exit(main())
