"""What a journal says: the sum of its entries, however it is written."""

import msgspec
import pytest

from shoal.ids import Epoch, JournalId, Key
from shoal.protocol.journal import (
    FAILED,
    IN_MEMORY,
    NO_CODE,
    CodeWritten,
    DatasetGone,
    DatasetWritten,
    Entry,
    LifeBegun,
    ShuffleWritten,
    TasksForgotten,
    TasksKept,
    TasksLetGo,
    TaskStands,
    TasksWritten,
    WorkersChanged,
    from_body,
    to_body,
)
from shoal.protocol.messages import Failure, TaskOptions
from shoal.protocol.shuffles import ShuffleDefinition
from shoal.scheduler.model.journaled import Journaled

PLAIN = TaskOptions()


def tasks(**depends: list[int]) -> TasksWritten:
    """Tasks by name, numbered by their letter: a is 1."""
    numbers = [JournalId(ord(name) - 96) for name in depends]
    n = len(numbers)
    return TasksWritten(
        numbers,
        [Key(name) for name in depends],
        [JournalId(7)] * n,
        [b"args"] * n,
        [[JournalId(number) for number in needs] for needs in depends.values()],
        ["p"],
        [0] * n,
        [PLAIN],
        [0] * n,
    )


HISTORY: list[Entry] = [
    LifeBegun(Epoch(5), "1.0"),
    WorkersChanged(["tcp://a:1", "tcp://b:1"], []),
    CodeWritten(JournalId(7), b"code"),
    CodeWritten(JournalId(8), b"of nobody"),
    tasks(a=[], b=[1], c=[2], d=[]),
    ShuffleWritten(JournalId(2), ShuffleDefinition("s", Key("b"), 1, 2)),
    TaskStands(JournalId(1), IN_MEMORY, 3, b"abc", "bytes"),
    TaskStands(JournalId(2), FAILED, failure=Failure(b"", "no"), blame=2),
    TasksKept([JournalId(3)]),
    DatasetWritten(Key("n"), b"value"),
    TasksKept([JournalId(3), JournalId(4)], Key("n")),
    WorkersChanged([], ["tcp://a:1"]),
]


def facts(journaled: Journaled) -> object:
    """All that it says, to be compared."""
    return (
        journaled.epoch,
        list(journaled.workers),
        {
            task.key: (
                journaled.codes.get(task.code),
                task.argument,
                [journaled.tasks[each].key for each in task.dependencies],
                task.prefix,
                task.options,
                task.definition,
                task.stands,
            )
            for task in journaled.tasks.values()
        },
        list(journaled.detached),
        {name: (it.payload, list(it.kept)) for name, it in journaled.datasets.items()},
    )


def test_entries_come_back_from_their_bytes() -> None:
    assert from_body(to_body(HISTORY)) == HISTORY


def test_an_entry_that_nobody_knows_is_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        from_body(msgspec.msgpack.encode([[99, "of another version"]]))


def test_the_bytes_of_entries_are_those_of_the_first_version() -> None:
    """Journals are read by later versions: who changes this line has changed the format."""
    assert to_body([TasksKept([JournalId(1)], Key("n")), LifeBegun(Epoch(2), "v")]).hex() == (
        "9293089101a16e930102a176"
    )


def test_the_shortest_journal_says_the_same() -> None:
    journaled = Journaled(HISTORY)
    again = Journaled(journaled.entries())
    assert facts(again) == facts(journaled)
    assert b"of nobody" not in again.codes.values()
    assert list(again.entries()) == list(journaled.entries())


def test_what_is_kept_ends_with_its_dataset_and_with_its_replacement() -> None:
    journaled = Journaled(HISTORY)
    journaled.take([DatasetWritten(Key("n"), b"other"), TasksKept([JournalId(4)], Key("n"))])
    assert facts(journaled)[-1] == {"n": (b"other", [4])}
    journaled.take([DatasetGone(Key("n")), TasksKept([JournalId(4)], Key("n"))])
    assert facts(journaled)[-2:] == ([3], {})
    journaled.take([TasksLetGo([JournalId(3), JournalId(4)]), TasksLetGo([], Key("n"))])
    assert journaled.roots() == {}


def test_only_what_something_kept_needs_is_left() -> None:
    journaled = Journaled(HISTORY)
    journaled.take([DatasetGone(Key("n"))])
    journaled.prune()
    assert [task.key for task in journaled.tasks.values()] == ["a", "b", "c"]


def test_a_key_that_comes_back_is_another_task() -> None:
    journaled = Journaled(HISTORY)
    journaled.take([TasksForgotten([JournalId(4)])])
    again = tasks(d=[1])
    journaled.take([msgspec.structs.replace(again, numbers=[JournalId(9)])])
    assert JournalId(4) not in journaled.tasks
    assert journaled.tasks[JournalId(9)].stands is None


def test_a_value_that_somebody_submits_later_keeps_how_it_stands() -> None:
    """It was known by key alone, and has a run spec now, which needs what was written after it."""
    bare = msgspec.structs.replace(tasks(a=[]), codes=[NO_CODE])
    stands = TaskStands(JournalId(1), IN_MEMORY, 3)
    journaled = Journaled([bare, stands, tasks(b=[]), tasks(a=[2])])
    assert journaled.tasks[JournalId(1)].stands == stands
    assert journaled.ordered([JournalId(1)]) == [2, 1]
    assert facts(Journaled(journaled.entries())) == facts(journaled)


def test_a_chain_of_any_length_is_put_in_order() -> None:
    n = 50_000
    numbers = [JournalId(n - i) for i in range(n)]
    chain = TasksWritten(
        numbers,
        [Key(str(number)) for number in numbers],
        [JournalId(7)] * n,
        [b""] * n,
        [[JournalId(number - 1)] if number > 1 else [] for number in numbers],
        ["p"],
        [0] * n,
        [PLAIN],
        [0] * n,
    )
    assert Journaled([chain]).ordered([JournalId(n)]) == sorted(numbers)
