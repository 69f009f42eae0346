"""One seed, one story: chance comes from the seed, and from nothing else."""

import os

import pytest

from shoal.sim.plan import from_text
from shoal.sim.run import run
from shoal.sim.streams import Streams
from shoal.sim.swarm import expand
from tests.programs import printed_by

PROGRAM = """
from shoal.sim.run import run
from shoal.sim.swarm import expand
for seed in range(0, 60, 3):
    print(run(expand(seed)).fingerprint)
"""


def fingerprints(hash_seed: str) -> list[str]:
    """Of some seeds, in a process whose hashes of texts are its own."""
    return printed_by("-c", PROGRAM, environ={**os.environ, "PYTHONHASHSEED": hash_seed}).split()


def test_traces_do_not_depend_on_hashes() -> None:
    first, second = fingerprints("1"), fingerprints("4242")
    assert len(first) == 20
    assert first == second


def test_a_second_run_is_the_same_run() -> None:
    plan = expand(5)
    assert run(plan).fingerprint == run(plan, checks_all=True).fingerprint


def test_different_seeds_have_different_stories() -> None:
    assert len({run(expand(seed)).fingerprint for seed in range(20)}) == 20


def test_a_plan_can_be_kept_as_text() -> None:
    for seed in range(40):
        plan = expand(seed)
        assert from_text(repr(plan)) == plan


def test_the_text_of_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="not of a plan, but of a Weather"):
        from_text("Weather()")


def test_one_stream_does_not_move_another() -> None:
    streams, others = Streams(7), Streams(7)
    for _ in range(100):
        others.of("faults").random()
    assert streams.of("delays").random() == others.of("delays").random()


def test_streams_of_two_seeds_differ() -> None:
    assert Streams(7).of("delays").random() != Streams(8).of("delays").random()
