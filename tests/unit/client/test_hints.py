"""Keywords of ours are told apart from the function's own; what nobody may run is told in words."""

import functools
import logging
import pickle
import time

import pytest

from shoal.client.hints import take_hints
from shoal.client.incoming import INCOMING
from shoal.client.notices import HeldByOuterTasks, NobodyBegins, NobodyMayRun
from shoal.client.session import Session
from shoal.ids import Key
from shoal.protocol.limits import PlacesHeld, TasksStranded
from shoal.protocol.memory import AllPaused
from tests.cluster.playing import heard


def plain(x):
    return x


def takes_it(x, limits):
    return limits


def takes_by_place(x, limits, /):
    return limits


def takes_time(x, timeout=None):
    return timeout


def takes_all(**kwargs):
    return kwargs


def logged(message):
    """What the client logs as it hears this."""
    records = []

    class Reading(logging.Handler):
        def emit(self, record):
            records.append(record)

    reading = Reading()
    logging.getLogger("shoal.client").addHandler(reading)
    try:
        with heard():
            INCOMING[type(message)](Session("c"), message, [])
    finally:
        logging.getLogger("shoal.client").removeHandler(reading)
    (record,) = records
    return record


class Made:
    def __init__(self, memory=None):
        self.memory = memory


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        (plain, ["limits", "memory", "timeout"]),
        (takes_it, ["memory", "timeout"]),
        (takes_by_place, ["limits", "memory", "timeout"]),
        (takes_all, []),
        (Made, ["limits", "timeout"]),
        (takes_time, ["limits", "memory"]),
        (functools.partial(takes_it, 1), ["memory", "timeout"]),
        (dict, []),  # of what is written in C nobody can tell
        (functools.partial(dict), []),
        (time.sleep, ["limits", "memory", "timeout"]),
        (functools.partial(time.sleep, 1), ["limits", "memory", "timeout"]),
        (3, []),
    ],
)
def test_a_keyword_is_the_functions_if_that_may_take_it(function, taken):
    kwargs = {"x": 1, "limits": {"db": 8}, "memory": "1 GiB", "timeout": 3}
    assert list(take_hints(function, kwargs)) == taken
    assert list(kwargs) == [
        name for name in ("x", "limits", "memory", "timeout") if name not in taken
    ]


def test_who_waits_for_paused_workers_reads_why_and_what_to_do():
    told = NobodyBegins(2, 3.2, "w0", "its process has 9 GiB. The disk is full.")
    assert str(told).startswith(
        "All 2 workers have been paused for 3 s, and tasks wait. The one with the least room is "
        "w0: its process has 9 GiB. The disk is full.\nTasks go on as soon as one has room."
    )
    assert logged(AllPaused(2, 3.2, told.worker, told.why)).getMessage() == str(told)
    alone = str(pickle.loads(pickle.dumps(NobodyBegins(1, 3.0, "w0", "it was told to"))))
    assert "The only worker has been paused for 3 s, and tasks wait: it was told to.\n" in alone


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"resources": {"MEM": 2.0}, "offered": {"MEM": 1.5}},
            "The task x has been ready for 3 s, and no connected worker may run it: MEM=2 is "
            "needed, and the most that one has of MEM is 1.5. Connected workers: 2 (named a, b).",
        ),
        (
            {"resources": {"MEM": 2.0}, "offered": {"MEM": 0.0}, "ntasks": 4, "nworkers": 7},
            "4 tasks, x among them, have been ready for 3 s, and no connected worker may run "
            "them: MEM=2 is needed, and none has MEM. Connected workers: 7 (named a, b and 5 "
            "more).",
        ),
        (
            {"workers": ["typo"], "npaused": 1},
            "it: only 'typo' may run such tasks. Connected workers: 2 (named a, b), "
            "1 of them paused, as their memory is short.",
        ),
        ({"nworkers": 0, "names": []}, "there is none. Connected workers: none."),
        (
            {"resources": {"GPU": 1.0, "MEM": 2.0}, "offered": {"GPU": 1.0, "MEM": 3.0}},
            "GPU=1, MEM=2 is needed, and no worker has all of that.",
        ),
    ],
)
def test_who_waits_for_what_nobody_has_reads_what_is_needed_and_what_there_is(fields, words):
    said = {
        "key": Key("x"),
        "ntasks": 1,
        "seconds": 3.0,
        "workers": [],
        "resources": {},
        "nworkers": 2,
        "offered": {},
        "names": ["a", "b"],
    }
    record = logged(TasksStranded(**{**said, **fields}))
    assert words in record.getMessage()
    assert record.levelno == logging.WARNING
    assert isinstance(record.args[0], NobodyMayRun)


@pytest.mark.parametrize(
    ("nholders", "words"),
    [
        (1, "it needs 'db', and all there is of it is with that task itself."),
        (3, "all there is of it is with that one and 2 more that have submitted such tasks."),
    ],
)
def test_who_waits_for_tasks_that_may_wait_for_each_other_reads_so(nholders, words):
    record = logged(PlacesHeld(Key("x"), Key("outer"), nholders, ["db"], 3.0))
    assert (
        "The task x, which outer has submitted, has been ready for 3.0 s: " in record.getMessage()
    )
    assert words in record.getMessage()
    assert record.levelno == logging.WARNING
    assert isinstance(record.args[0], HeldByOuterTasks)
