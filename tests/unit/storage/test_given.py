"""Results in a mapping of the user's."""

from __future__ import annotations

from collections import UserDict
from pathlib import Path
from typing import Any

import pytest

from shoal.ids import Key, TaskId
from shoal.protocol.keys import to_canonical
from shoal.storage.errors import CantHoldResults
from shoal.storage.given import GivenResults, mapping_of
from shoal.storage.results import SpilledSize


class OnShelves(UserDict[Any, Any]):
    """Spills by hand: `fast` has what is in memory, of which each value counts ten bytes."""

    def __init__(self, worker_local_directory: str = "", room: int = 0) -> None:
        super().__init__()
        self.folder, self.room = worker_local_directory, room
        self.fast: dict[Any, Any] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        if value == "refused":
            raise TypeError("Failed to pickle it")
        super().__setitem__(key, value)
        self.fast[key] = value

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self.fast.pop(key, None)

    @property
    def spilled_total(self) -> SpilledSize:
        n = len(self) - len(self.fast)
        return SpilledSize(10 * n, 7 * n)

    def evict(self) -> int:
        del self.fast[next(iter(self.fast))]
        return 10


def test_a_mapping_is_itself_and_what_makes_one_is_called(tmp_path: Path) -> None:
    """With the worker's folder, if it wants to know that."""
    given: UserDict[Any, Any] = UserDict()
    folder = tmp_path.as_posix
    assert mapping_of(given, folder) is given
    assert type(mapping_of(UserDict, folder)) is UserDict
    shelves = mapping_of((OnShelves, {"room": 3}), folder)
    assert isinstance(shelves, OnShelves)
    assert (shelves.room, shelves.folder) == (3, str(tmp_path))
    told = mapping_of((OnShelves, {"worker_local_directory": "elsewhere"}), folder)
    assert isinstance(told, OnShelves)
    assert told.folder == "elsewhere"


@pytest.mark.parametrize("given", [7, (UserDict, {}, 1), lambda: [1]])
def test_what_is_no_mapping_and_makes_none_is_refused(given: Any) -> None:
    with pytest.raises(CantHoldResults, match="MutableMapping"):
        mapping_of(given, str)


def test_values_are_there_by_the_keys_of_users() -> None:
    mapping: UserDict[Any, Any] = UserDict()
    results = GivenResults(mapping)
    results.put(TaskId(1), to_canonical(("x", 0)), "value", 10)
    results.put(TaskId(2), Key("y"), "other", 20)
    assert mapping == {("x", 0): "value", "y": "other"}
    assert results[TaskId(1)] == "value"
    assert results.entry(TaskId(2)) == ("y", "other", 20)
    assert results.by_key(Key("y")) == "other"
    assert (results.nbytes, len(results)) == (30, 2)
    results.put(TaskId(2), Key("y"), "newer", 5)
    results.drop([TaskId(1), TaskId(9)])
    assert mapping == {"y": "newer"}
    assert results.nbytes == 5
    results.clear()
    assert (dict(mapping), results.nbytes) == ({}, 0)


def test_a_key_that_moved_to_another_number_stays_in_the_mapping() -> None:
    mapping: UserDict[Any, Any] = UserDict()
    results = GivenResults(mapping)
    results.put(TaskId(1), Key("x"), "old", 1)
    results.put(TaskId(2), Key("x"), "new", 1)
    results.drop([TaskId(1)])
    assert mapping == {"x": "new"}


def test_a_mapping_that_spills_is_asked_to_and_believed() -> None:
    results = GivenResults(OnShelves())
    for i in range(4):
        results.put(TaskId(i), Key(f"x{i}"), i, 10)
    assert results.evict_some(15) == 20
    assert (results.nbytes, results.spilled_nbytes, results.disk_nbytes) == (20, 20, 14)
    assert results.evict_some(1000) == 20
    assert results.evict_some(1000) == 0
    assert GivenResults(UserDict()).evict_some(10) == 0


def test_what_it_does_not_take_stays_in_memory() -> None:
    """And what it has lost is not here."""
    mapping = OnShelves()
    results = GivenResults(mapping)
    results.put(TaskId(1), Key("x"), "refused", 10)
    assert (results[TaskId(1)], len(mapping)) == ("refused", 0)
    results.drop([TaskId(1)])
    assert results.entry(TaskId(1)) is None
    results.put(TaskId(2), Key("y"), "taken", 10)
    mapping.clear()
    assert results.entry(TaskId(2)) is None


class Broken(OnShelves):
    """Has an error wherever it is asked about spilling."""

    @property
    def spilled_total(self) -> SpilledSize:
        raise OSError("the count is lost")

    def evict(self) -> int:
        raise OSError("the disk is full")


def test_what_it_raises_as_it_is_to_spill_is_told_once_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    results = GivenResults(Broken())
    for i in range(2):
        results.put(TaskId(i), Key(f"x{i}"), i, 10)
        assert results.evict_some(15) == 0
    assert (results.nbytes, results.spilled_nbytes) == (20, 0)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "the disk is full" in told[1]
