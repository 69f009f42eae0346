"""How a number of workers follows a target; nothing is started."""

import asyncio
import logging
import math

import pytest

from shoal.deploy.adaptive_core import AdaptiveCore
from shoal.deploy.errors import CannotScale


class Played(AdaptiveCore):
    """Its workers are names in sets; they come when the test says so."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.names = []
        self.there = set()
        self.wanted = 0

    @property
    def plan(self):
        return set(self.names)

    requested = plan

    @property
    def observed(self):
        return self.there

    async def target(self):
        return self.wanted

    async def scale_up(self, n):
        self.names += range(len(self.names), n)

    async def scale_down(self, workers):
        self.names = [name for name in self.names if name not in workers]
        self.there = {name for name in self.there if name not in workers}


def look(core, *targets):
    """One look for each; what was done in them."""
    known = len(core.log)

    async def play():
        for core.wanted in targets:
            await core.look()

    asyncio.run(play())
    return [done for _, done in list(core.log)[known:]]


def test_more_workers_are_asked_for_at_once_and_within_the_bounds():
    core = Played(minimum=1, maximum=4)
    assert look(core, 0, 2, 9, 9) == [{"status": "up", "n": n} for n in (1, 2, 4)]


def test_fewer_are_kept_after_some_looks_and_those_that_have_not_come_go_first():
    core = Played(maximum=4, wait_count=3)
    look(core, 4)
    core.there = {0, 2, 3}
    assert look(core, 2, 2) == []
    assert look(core, 2) == [{"status": "down", "workers": [1, 3]}]
    assert core.plan == {0, 2}


def test_a_target_that_comes_back_in_time_costs_nobody_his_place():
    core = Played(wait_count=2)
    look(core, 2)
    core.there = {0, 1}
    assert look(core, 1, 2, 1, 2, 1, 2) == []


def test_what_a_look_raises_is_logged_once_and_the_next_one_comes(caplog):
    class Broken(Played):
        async def scale_up(self, n):
            if n < 3:
                raise OSError("no more machines")
            await super().scale_up(n)

    core = Broken()
    with caplog.at_level(logging.WARNING):
        look(core, 1, 1, 2)
    assert [record.getMessage() for record in caplog.records] == [
        "Adaptive scaling encountered an error, and goes on: OSError: no more machines"
    ]
    assert isinstance(core.failure, OSError)
    look(core, 3)
    assert (core.plan, core.failure) == ({0, 1, 2}, None)


def test_a_look_does_not_begin_while_another_is_under_way():
    class Slow(Played):
        ntargets = 0

        async def target(self):
            self.ntargets += 1
            await self.go.wait()
            return 1

    async def play():
        core = Slow()
        core.go = asyncio.Event()
        first = asyncio.ensure_future(core.adapt())
        await asyncio.sleep(0)
        await core.adapt()
        core.go.set()
        await first
        return core.ntargets

    assert asyncio.run(play()) == 1


@pytest.mark.parametrize("bounds", [{"minimum": -1}, {"minimum": 1.5}, {"maximum": "4"}])
def test_bounds_that_make_no_sense_are_refused(bounds):
    with pytest.raises(ValueError, match="is a whole number from 0 on"):
        AdaptiveCore(**bounds)


def test_by_itself_it_has_no_workers_and_can_start_none():
    core = AdaptiveCore()
    assert (core.plan, core.requested, core.observed) == (set(), set(), set())
    assert (core.minimum, core.maximum, core.wait_count) == (0, math.inf, 3)
    for deed in (core.scale_up(1), core.scale_down([1])):
        with pytest.raises(CannotScale):
            asyncio.run(deed)
