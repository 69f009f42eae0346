"""One odd ending: what a task does, and what its future shall make of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

Body = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """A task's function with what is promised of it."""

    name: str
    body: Body
    error: type[BaseException] | str | None = None
    """Class, or its name if only the task has it, of what is raised to whoever asks for the
    result; None: the result is there."""
    text: str = ""
    """Found in what the error says, its notes included."""
    check: Callable[[Any], bool] | None = None
    """Whether a value is the result."""
    stays: bool = False
    """The result is good where it was made, and can't leave."""
    once: bool = False
    """The body is run once, since it is slow by its nature."""

    def is_right(self, error: BaseException) -> bool:
        """Whether `error` is the promised one, and says what it should."""
        notes = getattr(error, "__notes__", None)
        said = "\n".join([str(error), *(notes if isinstance(notes, list) else ())])
        kind: object = type(error).__name__ if isinstance(self.error, str) else type(error)
        named = not self.stays or self.name in said  # by its key, since it is not in the traceback
        return kind == self.error and named and re.search(self.text, said) is not None


CASES: Final[dict[str, Case]] = {}
"""All of them, by name."""


def _add(case: Case) -> Body:
    assert case.name not in CASES, case.name
    CASES[case.name] = case
    return case.body


def raises(error: type[BaseException] | str, text: str = "") -> Callable[[Body], Body]:
    """The decorated body ends in that error."""
    return lambda body: _add(Case(body.__name__, body, error, text))


def gives(check: Callable[[Any], bool], *, once: bool = False) -> Callable[[Body], Body]:
    """The decorated body's result arrives, and passes the check."""
    return lambda body: _add(Case(body.__name__, body, check=check, once=once))


def stays(
    check: Callable[[Any], bool], error: type[BaseException] | str, text: str
) -> Callable[[Body], Body]:
    """The decorated body's result is of use on its worker; elsewhere there is that error."""
    return lambda body: _add(Case(body.__name__, body, error, text, check, stays=True))


def is_right(room: str, name: str, value: Any) -> bool:
    """A task that looks at the result of another, on whichever worker; `room`: of its body."""
    import_module(room)
    check = CASES[name].check
    assert check is not None
    return bool(check(value))


def is_there(value: Any) -> bool:
    """A task that needs the result of another, and doesn't look at it."""
    return True
