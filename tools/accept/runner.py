"""Run gates and print one line for each figure."""

import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from time import monotonic

from tools.accept.figure import Figure, Gate


def load_gates() -> None:
    """Import every `gates_*.py` of this folder, so that they register."""
    for path in sorted(Path(__file__).parent.glob("gates_*.py")):
        import_module(f"tools.accept.{path.stem}")


def figures_of(gate: Gate) -> Iterator[Figure]:
    """What the gate measures; a gate that raises is a figure that failed, with the reason."""
    try:
        measured = gate.measure()
        yield from [measured] if isinstance(measured, Figure) else measured
    except Exception as error:
        traceback.print_exc()
        yield Figure(gate.name, f"{type(error).__name__}: {error}", "to be measured", passed=False)


def run(gates: Iterable[Gate]) -> bool:
    """Measure `gates` one after the other, print as it goes; whether every figure passed."""
    passed = failed = 0
    started_at = monotonic()
    for gate in gates:
        for figure in figures_of(gate):
            print(figure, flush=True)
            passed += figure.passed
            failed += not figure.passed
    seconds = monotonic() - started_at
    print(f"{passed} passed, {failed} failed in {seconds:.0f} s")
    return not failed and passed > 0
