"""Turns: one thread at a time has each thing, again and again if need be, and never in a circle."""

import threading
from collections.abc import Callable

import pytest

from shoal.worker.shell.turns import Turns


class Side:
    """A thread that does one thing, and what it raised."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive(), "it waits for ever"
        if self._error is not None:
            raise self._error


def test_a_thing_is_had_by_one_thread_at_a_time() -> None:
    turns, said = Turns(), []
    has_it, may_go = threading.Event(), threading.Event()

    def first() -> None:
        with turns.of("x"):
            has_it.set()
            assert may_go.wait(10)
            said.append("first")

    def second() -> None:
        assert has_it.wait(10)
        with turns.of("x"):
            said.append("second")

    sides = [Side(first), Side(second)]
    assert has_it.wait(10)
    with turns.of("y"):  # another thing is free meanwhile
        may_go.set()
    for side in sides:
        side.end()
    assert said == ["first", "second"]


def test_a_thread_may_have_it_again_and_keeps_it_until_the_last() -> None:
    turns, said = Turns(), []

    def other() -> None:
        with turns.of("x"):
            said.append("other")

    with turns.of("x"):
        with turns.of("x"):
            pass
        side = Side(other)
        assert turns.has_any(threading.get_ident())
        said.append("mine")
    side.end()
    assert said == ["mine", "other"]
    assert not turns.has_any(threading.get_ident())


@pytest.mark.parametrize("nsides", [2, 3])
def test_threads_that_would_wait_for_each_other_in_a_circle_do_not(nsides: int) -> None:
    turns, all_there = Turns(), threading.Barrier(nsides, timeout=10)

    def side(number: int) -> Callable[[], None]:
        def have_both() -> None:
            with turns.of(number):
                all_there.wait()
                with turns.of((number + 1) % nsides):
                    pass

        return have_both

    sides = [Side(side(number)) for number in range(nsides)]
    for one in sides:
        one.end()
    with turns.of(0), turns.of(1):
        pass  # nothing is left taken


def test_what_is_raised_inside_gives_it_back() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="no"), turns.of("x"):
        raise ValueError("no")

    def other() -> None:
        with turns.of("x"):
            pass

    Side(other).end()
