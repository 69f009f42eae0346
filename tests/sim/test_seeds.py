"""Seeds run through, whatever goes wrong in them."""

from pathlib import Path

import pytest

from shoal.sim.__main__ import check
from shoal.sim.run import Verdict

ONCE_FAILED = [
    int(line.split()[0])
    for line in Path(__file__).with_name("seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
NSEEDS = 240
NPARTS = 8


def told(verdict: Verdict) -> str:
    """What a failed run is about."""
    story = "\n".join(verdict.story)
    return f"seed {verdict.plan.seed}: {verdict.invariant}: {verdict.sentence}\n{story}"


@pytest.mark.parametrize("part", range(NPARTS))
def test_all_that_is_wanted_ends_and_nothing_is_left(part: int) -> None:
    for seed in range(part, NSEEDS, NPARTS):
        verdict = check(seed)
        assert verdict.is_good, told(verdict)


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_a_seed_that_once_failed_is_good(seed: int) -> None:
    verdict = check(seed, checks_all=True)
    assert verdict.is_good, told(verdict)
