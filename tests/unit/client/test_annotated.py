"""Whatever is said about tasks, whichever way they take to the scheduler, is said of them there."""

import math
from datetime import timedelta

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from shoal.client.frames import AnnotatedExpressions
from shoal.protocol.messages import SubmitTasks, TaskOptions
from tests.unit.client.fake_scheduler import FakeScheduler, play

SAID = {
    "priority": (7, 7.0),
    "retries": (3, 3),
    "workers": (["here"], ["here"]),
    "allow_other_workers": (True, True),
    "resources": ({"MEM": 2, "GPU": 0.5}, {"MEM": 2.0, "GPU": 0.5}),
    "executor": ("other", "other"),
    "limits": ({"db": 8}, {"db": 8}),
    "memory": ("2 GiB", 2 << 30),
    "timeout": ("5 minutes", 300.0),
}
"""Annotation -> what is said, and how that travels."""


def frame():
    numbers = np.arange(60)
    plain = pd.DataFrame({"a": numbers % 7, "b": numbers * 1.5})
    return dd.from_pandas(plain, npartitions=3)


def numbers():
    return da.ones((8, 8), chunks=4) + 1


COLLECTIONS = {
    "array": lambda: (numbers() * 2).sum(axis=0),
    "map_blocks": lambda: (numbers() + numbers().T).map_blocks(np.sqrt),
    "bag": lambda: db.range(9, npartitions=3).map(abs).filter(bool),
    "delayed": lambda: dask.delayed(sum)([dask.delayed(abs)(i) for i in range(3)]),
    "dataframe": lambda: frame().b.add(1).max(),
    "groupby": lambda: frame().groupby("a").mean(),
    "merge": lambda: frame().merge(frame(), on="a"),
    "projected": lambda: frame()[frame().b > 3].a,
}


def computed(client, collection):
    return client.compute(collection)


def persisted(client, collection):
    return client.persist(collection)


def asked_for(client, collection):
    return client.get(collection.__dask_graph__(), collection.__dask_keys__(), sync=False)


WAYS = {"compute": computed, "persist": persisted, "get": asked_for}


async def options_sent(scheduler: FakeScheduler) -> list[TaskOptions]:
    """Of all tasks that were submitted, in order."""
    found = []
    for message in await scheduler.heard_of(SubmitTasks):
        choices = [message.options or TaskOptions(), *message.other_options]
        indices = message.option_indices or [0] * len(message.keys)
        found += [choices[index] for index in indices]
    return found


@pytest.fixture(autouse=True)
def as_with_a_default_client():
    """Expressions of dataframes remember their annotations while there is one."""
    expressions = AnnotatedExpressions()
    expressions.turn_on()
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):
        yield
    expressions.turn_off()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", COLLECTIONS)
def test_all_that_is_said_around_a_collection_and_its_computing_reaches_every_task(kind, way):
    """Case C077: annotations survive what dask and we make of a graph."""

    async def scenario(client, scheduler):
        with dask.annotate(**{name: said for name, (said, _) in SAID.items()}):
            kept = WAYS[way](client, COLLECTIONS[kind]())
        options = await options_sent(scheduler)
        del kept
        for each in options:
            for name, (_, travels) in SAID.items():
                assert getattr(each, name) == travels

    play(scenario)


@pytest.mark.parametrize("way", ["compute", "persist"])
@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("kind", COLLECTIONS)
def test_each_thing_said_as_a_collection_is_made_reaches_its_tasks(kind, name, way):
    """Though it is computed elsewhere; fusing keeps apart what differs."""
    said, travels = SAID[name]
    together = {"workers": ["here"], name: said} if name == "allow_other_workers" else {name: said}

    async def scenario(client, scheduler):
        with dask.annotate(**together):
            collection = COLLECTIONS[kind]()
        kept = WAYS[way](client, collection)
        options = await options_sent(scheduler)
        del kept
        found = [getattr(each, name) for each in options]
        assert travels in found
        others = [other for other in found if other != travels]
        assert all(other == getattr(TaskOptions(), name) for other in others)
        assert len(others) <= 1  # what puts the parts together at the end is nobody's

    play(scenario)


def test_what_is_said_of_a_part_holds_where_other_is_said_of_all():
    """Nothing at all is something, too."""

    async def scenario(client, scheduler):
        with dask.annotate(priority=0, retries=0, limits={"web": 1}):
            part = dask.delayed(abs)(-1)
        with dask.annotate(priority=5, retries=4, limits={"db": 8}):
            kept = client.compute(dask.delayed(abs)(part))
        said = {
            (each.priority, each.retries, *each.limits) for each in await options_sent(scheduler)
        }
        del kept
        assert said == {(0.0, 0, "web"), (5.0, 4, "db")}

    play(scenario)


def test_what_is_said_by_key_may_be_nothing_for_some():
    async def scenario(client, scheduler):
        with dask.annotate(priority=lambda key: key[1] if isinstance(key, tuple) else 0):
            kept = client.persist(db.range(6, npartitions=3).map(abs))
        found = {each.priority for each in await options_sent(scheduler)}
        del kept
        assert found == {0.0, 1.0, 2.0}

    play(scenario)


@pytest.mark.parametrize("way", ["compute", "persist"])
def test_keywords_reach_every_task(way):
    async def scenario(client, scheduler):
        call = getattr(client, way)
        kept = call(numbers(), priority=3, limits={"db": 2}, resources={"MEM": 1.5}, retries=1)
        options = await options_sent(scheduler)
        del kept
        assert options
        for each in options:
            assert (each.priority, each.limits, each.resources, each.retries) == (
                3.0,
                {"db": 2},
                {"MEM": 1.5},
                1,
            )

    play(scenario)


def takes_limits(x, limits=None):
    return limits


def takes_all(x, **further):
    return further


@pytest.mark.parametrize(
    ("function", "result"), [(takes_limits, {"db": 8}), (takes_all, {"limits": {"db": 8}})]
)
def test_a_function_that_takes_such_a_keyword_gets_it(function, result):
    async def scenario(client, scheduler):
        one = client.submit(function, 1, limits={"db": 8})
        many = client.map(function, [2], limits={"db": 8})
        assert [await one, *await client.gather(many)] == [result, result]
        assert all(not each.limits for each in await options_sent(scheduler))

    play(scenario)


def test_any_other_function_is_limited_by_it():
    async def scenario(client, scheduler):
        one = client.submit(abs, -1, limits={"db": 8})
        many = client.map(abs, [-2], limits="disk")
        assert [await one, *await client.gather(many)] == [1, 2]
        found = [each.limits for each in await options_sent(scheduler)]
        assert found == [{"db": 8}, {"disk": 0}]

    play(scenario)


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(2, 2.0), ("500ms", 0.5), (timedelta(hours=1), 3600.0), (None, 0.0), (math.inf, 0.0)],
)
def test_a_timeout_is_said_in_any_of_the_usual_ways(timeout, seconds):
    async def scenario(client, scheduler):
        assert await client.submit(abs, -1, timeout=timeout, priority=1) == 1
        assert [each.timeout for each in await options_sent(scheduler)] == [seconds]

    play(scenario)


@pytest.mark.parametrize("timeout", [-1, "soon", True, [3], math.nan, "-3s"])
def test_what_is_no_timeout_is_refused(timeout):
    async def scenario(client, scheduler):
        with pytest.raises((TypeError, ValueError)):
            client.submit(abs, -1, timeout=timeout)

    play(scenario)


@pytest.mark.parametrize("limits", [3, {"db": 0}, {"db": -1}, {"db": 1.5}, {"db": "many"}])
def test_what_is_no_limit_is_refused(limits):
    async def scenario(client, scheduler):
        with pytest.raises((TypeError, ValueError)):
            client.submit(abs, -1, limits=limits)

    play(scenario)
