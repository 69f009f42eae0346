"""Errors of nannies travel whole, and say what happened, why, and what to do."""

import pickle

import pytest

from shoal.errors import KilledWorker, ShoalError, causes_in_words
from shoal.nanny.death import Death
from shoal.nanny.errors import (
    CrashLoop,
    MemoryTooSmall,
    NotPlain,
    ProcessDied,
    StartAbandoned,
    UnknownOption,
)

ERRORS = [
    CrashLoop("worker 0", ["exit code 3", "exit code 3"], 1.0, "no such module"),
    NotPlain("name", "object"),
    ProcessDied("worker 0", Death(pid=5, exit_code=1, last_lines="ValueError: no")),
    StartAbandoned("worker 0"),
    UnknownOption("fruit"),
    KilledWorker("x", "tcp://a:1", 4, "it is gone", ["exit code 7"]),
    MemoryTooSmall("worker 0", ["killed at 4 B, above its memory limit of 3 B"] * 2, 60.0, ""),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_a_journey(error: ShoalError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_crash_loop_names_its_causes_in_its_first_line() -> None:
    first, _, rest = str(ERRORS[0]).partition("\n")
    assert first.startswith(
        "The process of worker 0 died 2 times in a row, and never lived for 1 s"
    )
    assert "exit code 3 (twice)." in first
    assert rest.startswith("no such module\n")
    assert "cluster.scale(n)" in rest


def test_a_process_that_knew_what_was_wrong_is_quoted_and_nothing_else_is_said() -> None:
    assert str(ERRORS[2]) == "The process of worker 0 could not start: ValueError: no"


def test_memory_that_is_too_small_is_told_with_its_figures_and_what_to_do() -> None:
    text = str(ERRORS[-1])
    assert text.startswith(
        "The process of worker 0 was killed for its memory 2 times in a row, each within 60 s of "
        "its start: killed at 4 B, above its memory limit of 3 B (twice)."
    )
    assert "memory_limit=" in text
    assert "fewer threads" in text
    assert "cluster.scale(n)" in text


@pytest.mark.parametrize(
    ("causes", "account"),
    [
        ([], ".\nIt is not run again"),
        (["exit code 3"] * 2, ".\n2 of them died of: exit code 3 (twice); what 2 died of was not"),
        (["exit code 3"] * 4, ".\nThey died of: exit code 3 (4 times).\nIt is not run again"),
    ],
)
def test_the_account_of_a_task_that_kills_adds_up(causes: list[str], account: str) -> None:
    text = str(KilledWorker("x", "tcp://a:1", 4, "", causes))
    assert f"was running on 4 workers as they died; the last was tcp://a:1{account}" in text


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        (["a"], "a"),
        (["a", "b", "a", "a"], "a (3 times); b"),
        (["a", "a", "b"], "b; a (twice)"),
        (["a", "b", "b", "c", "d"], "d; c; b (twice); and 1 more before"),
    ],
)
def test_causes_are_counted_and_the_last_ones_told(causes: list[str], words: str) -> None:
    assert causes_in_words(causes) == words
