"""What brought something about, as one word that can be asked for: `SubmitTasks-17`, `run-4`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_RUN = "run"


class Stimuli(NamedTuple):
    """What some words may mean, beside that they may be keys."""

    steps: list[tuple[str, int]]  # of the scheduler: what was said, and the step's number
    runs: list[int]  # of tasks, by number


def stimulus_of(cause: str, step: int) -> str:
    """The word for one step of the scheduler."""
    return f"{cause}-{step}"


def stimulus_of_run(run: int) -> str:
    """The word for one run of a task; `worker` for what belongs to none."""
    return f"{_RUN}-{run}" if run else "worker"


def read_stimuli(words: Iterable[object]) -> Stimuli:
    """What these mean, as far as they are such words."""
    found = Stimuli([], [])
    for word in words:
        cause, _, number = word.rpartition("-") if isinstance(word, str) else ("", "", "")
        if cause and number.isdecimal():
            found.steps.append((cause, int(number)))
            if cause == _RUN:
                found.runs.append(int(number))
    return found
