"""What a gate measures, and the registry of all gates."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One promise with what was measured; both as text with units, ready to be read."""

    name: str
    value: str
    target: str
    passed: bool

    def __str__(self) -> str:
        word = "PASS" if self.passed else "FAIL"
        return f"{word}  {self.name}: {self.value} (target: {self.target})"


Measure = Callable[[], Figure | Iterable[Figure]]


@dataclass(frozen=True)
class Gate:
    """A way to measure one promise, or some that are measured together."""

    name: str
    measure: Measure
    is_cheap: bool
    """Some seconds, without a network, and no test that CI runs anyway: part of every CI run."""


class Gates:
    """The gates, in the order in which they were registered; each name once."""

    def __init__(self) -> None:
        self.by_name: dict[str, Gate] = {}

    def register(self, name: str, *, cheap: bool = False) -> Callable[[Measure], Measure]:
        """Decorate a function that returns a Figure, or several.

        Raises:
            ValueError: there is a gate of that name.
        """

        def keep(measure: Measure) -> Measure:
            if name in self.by_name:
                raise ValueError(f"there are two gates named {name!r}")
            self.by_name[name] = Gate(name, measure, cheap)
            return measure

        return keep

    def chosen(self, only: Iterable[str] = (), *, cheap: bool = False) -> list[Gate]:
        """Those whose name starts with one of `only` (all if there is none), cheap ones if asked.

        Raises:
            KeyError: no gate starts with one of `only`.
        """
        prefixes = tuple(only)
        for prefix in prefixes:
            if not any(name.startswith(prefix) for name in self.by_name):
                raise KeyError(prefix)
        return [
            gate
            for gate in self.by_name.values()
            if (not prefixes or gate.name.startswith(prefixes)) and (gate.is_cheap or not cheap)
        ]


GATES = Gates()
"""Every `gates_*.py` beside this file registers into it."""
