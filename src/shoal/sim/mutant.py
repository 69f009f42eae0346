"""One guard of a machine, and what its source text is without it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard less."""

    name: str  # what the machine then forgets
    module: str
    old: str  # occurs once
    new: str
