"""What the worker's machine can't be asked by its old names, and what went wrong in it."""

from __future__ import annotations

from typing import Any

from shoal.errors import ShoalError


class NotDecidedHere(ShoalError, TypeError):
    """A stimulus of old that means nothing to this worker's machine."""

    def __init__(self, stimulus: str, why: str) -> None:
        """`why`: who decides that instead, as a sentence."""
        super().__init__(stimulus, why)
        self.stimulus, self.why = stimulus, why

    def __str__(self) -> str:
        return (
            f"This worker's machine takes no {self.stimulus}: {self.why} "
            "docs/compatibility.md has the list."
        )


class InvalidTransition(Exception):
    """Something was said of a task that can't be, as it stands."""

    def __init__(self, key: Any, start: str, finish: str, story: list[tuple[Any, ...]]) -> None:
        super().__init__(key, start, finish, story)
        self.key, self.start, self.finish, self.story = key, start, finish, story

    def __str__(self) -> str:
        told = "\n    ".join(map(str, self.story))
        return (
            f"{type(self).__name__}: {self.key!r} :: {self.start}->{self.finish}\n"
            f"  Story:\n    {told}"
        )

    __repr__ = __str__

    def to_event(self) -> tuple[str, dict[str, Any]]:
        """A topic and what to tell under it."""
        told = {"key": self.key, "start": self.start, "finish": self.finish, "story": self.story}
        return "invalid-worker-transition", told


class TransitionCounterMaxExceeded(InvalidTransition):
    """A machine of old went in circles.  This one can't: each step ends."""


class InvalidTaskState(Exception):
    """What is known of a task contradicts itself."""

    def __init__(self, key: Any, state: str, story: list[tuple[Any, ...]]) -> None:
        super().__init__(key, state, story)
        self.key, self.state, self.story = key, state, story

    def __str__(self) -> str:
        told = "\n    ".join(map(str, self.story))
        return f"{type(self).__name__}: {self.key!r} :: {self.state}\n  Story:\n    {told}"

    __repr__ = __str__

    def to_event(self) -> tuple[str, dict[str, Any]]:
        """A topic and what to tell under it."""
        told = {"key": self.key, "state": self.state, "story": self.story}
        return "invalid-worker-task-state", told


class RecommendationsConflict(Exception):
    """Two parts of a step recommend different states for one task."""
