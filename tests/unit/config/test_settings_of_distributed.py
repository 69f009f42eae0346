"""Every setting of `distributed` is heeded here, or told of, or there for programs to read."""

import json
import logging
from pathlib import Path
from typing import Any

import dask
import pytest

from shoal import config
from shoal.compat.defaults import OTHERWISE, old_defaults
from shoal.config.errors import SettingError
from shoal.config.legacy import LEGACY
from shoal.config.misspelt import OF_OTHERS
from shoal.config.reading import full_name_of
from shoal.config.telling import is_same, tell_of_unheeded, unheeded, unknown
from shoal.config.unheeded import CARRIED, NOT_YET, UNHEEDED

THEIRS: dict[str, Any] = json.loads(
    Path(__file__).with_name("settings_of_distributed.json").read_text()
)
"""Each setting below `distributed.` and its default."""

ALL_OURS = {
    f"{section.path}.{last}": getattr(section(), field)
    for section in config.SECTIONS
    for field, last in zip(section.__struct_fields__, section.__struct_encode_fields__, strict=True)
}

OTHER_DEFAULTS = {
    "comm.timeouts.tcp": "a machine that vanished without a word is noticed in half the time",
    "nanny.pre-spawn-environ": "freed memory is given back by other means than malloc's threshold",
}
"""Those whose default is another one here, and why."""


def away_from(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case None:
            return "77"
        case bool():
            return not value
        case int() | float():
            return value / 2 if 0 < value < 1 else 7 if value == float("inf") else value + 1
        case str():
            return {"optimistic": "managed", "spawn": "fork", "auto": False}.get(value, "77")
        case list():
            return ["something"]
        case dict():
            return {"something": 1}
        case _:
            raise AssertionError(value)


@pytest.fixture(autouse=True)
def quiet_before():
    """No setting of `distributed` but what a test sets."""
    with dask.config.set({"distributed": {}, "shoal": {}}):
        yield


def test_every_setting_of_distributed_has_one_place_and_nothing_else_has():
    places = [*LEGACY, *UNHEEDED, *CARRIED]
    assert sorted(places) == sorted(THEIRS)
    assert set(NOT_YET) <= set(ALL_OURS)


@pytest.mark.parametrize("name", THEIRS)
def test_programs_read_the_default_that_they_know(name):
    ours = old_defaults()[name]
    if name == "scheduler.default-task-durations":
        assert all(is_same(duration, "1us") for duration in ours.values())
        assert ours.keys() == THEIRS[name].keys()
    else:
        assert is_same(ours, THEIRS[name]) is (name not in OTHER_DEFAULTS)
    assert set(OTHERWISE) <= set(THEIRS)


@pytest.mark.parametrize("name", UNHEEDED)
def test_what_is_not_heeded_is_told_of_once_it_is_away_from_its_default(name):
    default = UNHEEDED[name].default
    with dask.config.set({f"distributed.{name}": default}):
        assert list(unheeded()) == []
    with dask.config.set({f"distributed.{name}": away_from(default)}):
        [(told, said)] = unheeded()
    assert told == f"distributed.{name}"
    assert said.startswith(f"The setting distributed.{name} is {away_from(default)!r}, and ")
    assert said.endswith(UNHEEDED[name].why)


@pytest.mark.parametrize("new", NOT_YET)
def test_what_is_not_heeded_yet_is_told_of_once_it_is_away_from_its_default(new):
    with dask.config.set({f"shoal.{new}": ALL_OURS[new]}):
        assert list(unheeded()) == []
        name = full_name_of(new)
    with dask.config.set({name: away_from(ALL_OURS[new])}):
        [(told, said)] = unheeded()
    assert told == name
    assert said.endswith(NOT_YET[new])


def test_with_all_defaults_entered_nothing_is_told():
    tree: dict[str, Any] = {f"distributed.{name}": value for name, value in old_defaults().items()}
    with dask.config.set(tree):
        assert list(unheeded()) == list(unknown()) == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("worker.memory.targett", "Did you mean distributed.worker.memory.target?"),
        ("worker.memory.max-spil", "Did you mean distributed.worker.memory.max-spill or"),
        ("schedular.work-stealing", "Did you mean distributed.scheduler.work-stealing?"),
        ("connect", "Did you mean distributed.comm.timeouts.connect?"),
        ("xyzzy", "`shoal config` shows all"),
    ],
)
def test_a_name_that_is_no_setting_is_told_once_with_those_that_are_near(given, meant, caplog):
    with dask.config.set({f"distributed.{given}": 1}):
        tell_of_unheeded()
        tell_of_unheeded()
    [record] = caplog.records
    assert record.getMessage().startswith(f"There is no setting distributed.{given}: ")
    assert meant in record.getMessage()


def test_names_of_others_and_all_that_there_are_are_no_mistakes():
    known = [*THEIRS, *sorted(OF_OTHERS)]
    with dask.config.set({f"distributed.{name}": None for name in known}):
        assert list(unknown()) == []
    with dask.config.set({"distributed.comm.ucx.tcp": True, "distributed.nanny.environ.A_B": "1"}):
        assert list(unknown()) == []
    with dask.config.set({"distributed.worker.memory": False}):
        [(name, _)] = unknown()
    assert name == "distributed.worker.memory"


def test_a_section_that_there_is_not_is_refused_and_what_was_meant_is_named():
    with (
        dask.config.set({"shoal.schedular.validate": True}),
        pytest.raises(SettingError, match=r"shoal\.schedular .*Did you mean scheduler\?"),
    ):
        tell_of_unheeded()
    for section in config.SECTIONS:
        with dask.config.set({f"shoal.{section.path}": {}}):
            tell_of_unheeded()


def test_one_default_may_be_written_in_many_ways():
    same = (("1000ms", "1s"), (1, "1s"), ("1024", "1kiB"), (False, None), ([], None))
    assert all(is_same(value, default) for value, default in same)
    others = (("2 s", "1s"), (True, None), ({"x": 1}, "1s"), ("x", None), ("auto", "1s"))
    assert not any(is_same(value, default) for value, default in others)


def test_a_setting_is_told_of_once_in_a_process(caplog):
    with (
        caplog.at_level(logging.WARNING, "shoal.config"),
        dask.config.set({"distributed.rmm.pool-size": "once in a process"}),
    ):
        tell_of_unheeded()
        tell_of_unheeded()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "distributed.rmm.pool-size is 'once in a process'" in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("distributed.comm.require-encryption", True, "nobody is let in without the token"),
        ("shoal.comm.require-encryption", True, "nobody is let in without the token"),
        ("distributed.scheduler.pickle", False, "nobody is let in without the token"),
    ],
)
def test_what_must_not_be_let_go_unheeded_is_refused(name, value, advice):
    with dask.config.set({name: value}), pytest.raises(config.SettingError) as refusal:
        tell_of_unheeded()
    assert f"The setting {name} can't be used" in str(refusal.value)
    assert advice in str(refusal.value)
