"""The simulator notices missing guards.  `python -m shoal.sim.mutants` tries all of them."""

import pytest

from shoal.sim.mutants import MUTANTS, Mutant, mutated, nseeds_to_find, source_of

QUICK = (
    "results of stale runs are left where they are",
    "released replicas are not freed",
    "an input that its holder lacks is not asked of the next",
    "a cancelled want may be shared by a new future",
    "a release overtakes the submission before it",
    "a client that has gone keeps its locks",
    "a claim that is given up ends the one that holds the lock",
    "a run that waits for tasks that it submitted is waited for",
    "who waits is let in as results are being written",
)
"""Those that some tens of seeds notice."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_guard_that_a_mutant_lacks_exists(mutant: Mutant) -> None:
    assert mutated(mutant, source_of(mutant)) != source_of(mutant)


def test_a_guard_that_has_changed_is_reported() -> None:
    with pytest.raises(LookupError, match="'nothing' is in somewhere 2 times"):
        mutated(Mutant("nothing", "somewhere", "guard", ""), "guard guard")


@pytest.mark.parametrize("name", QUICK)
def test_a_missing_guard_is_noticed(name: str) -> None:
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    assert nseeds_to_find(mutant, 150) is not None
