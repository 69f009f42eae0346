"""Keywords of ours are told apart from the function's own; what nobody may run is told in words."""

import functools
import logging

import pytest

from shoal.client.errors import NobodyMayRun
from shoal.client.hints import take_hints
from shoal.client.incoming import INCOMING
from shoal.client.session import Session
from shoal.ids import Key
from shoal.protocol.limits import TasksStranded
from tests.cluster.playing import heard


def plain(x):
    return x


def takes_it(x, limits):
    return limits


def takes_by_place(x, limits, /):
    return limits


def takes_all(**kwargs):
    return kwargs


class Made:
    def __init__(self, memory=None):
        self.memory = memory


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        (plain, ["limits", "memory"]),
        (takes_it, ["memory"]),
        (takes_by_place, ["limits", "memory"]),
        (takes_all, []),
        (Made, ["limits"]),
        (functools.partial(takes_it, 1), ["memory"]),
        (dict, []),  # of some builtins nobody can tell
        (3, []),
    ],
)
def test_a_keyword_is_the_functions_if_that_may_take_it(function, taken):
    kwargs = {"x": 1, "limits": {"db": 8}, "memory": "1 GiB"}
    assert list(take_hints(function, kwargs)) == taken
    assert list(kwargs) == [name for name in ("x", "limits", "memory") if name not in taken]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"resources": {"MEM": 2.0}, "offered": {"MEM": 1.5}},
            "The task x has been ready for 3 s, and no connected worker may run it: MEM=2 is "
            "needed, and the most that one has of MEM is 1.5. Connected workers: a, b.",
        ),
        (
            {"resources": {"MEM": 2.0}, "offered": {"MEM": 0.0}, "ntasks": 4, "nworkers": 7},
            "4 tasks, x among them, have been ready for 3 s, and no connected worker may run "
            "them: MEM=2 is needed, and none has MEM. Connected workers: a, b and 5 more.",
        ),
        (
            {"workers": ["typo"], "npaused": 1},
            "it: only 'typo' may run such tasks. Connected workers: a, b (1 of them paused, as "
            "their memory is short).",
        ),
        ({"nworkers": 0, "names": []}, "there is none. Connected workers: none."),
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
    records = []

    class Reading(logging.Handler):
        def emit(self, record):
            records.append(record)

    reading = Reading()
    logging.getLogger("shoal.client").addHandler(reading)
    try:
        with heard():
            INCOMING[TasksStranded](Session("c"), TasksStranded(**{**said, **fields}), [])
    finally:
        logging.getLogger("shoal.client").removeHandler(reading)
    (record,) = records
    assert words in record.getMessage()
    assert record.levelno == logging.WARNING
    assert isinstance(record.args[0], NobodyMayRun)
