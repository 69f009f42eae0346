"""How a run is ended from outside: an exception is raised in its thread, once, and in it alone.

Two threads are at it, and neither waits for the other in the usual case.  What only one of them
may do is a right, which the first has that takes it: the loop's thread to raise something in the
run, or the run's own to see to it that nothing is raised any more; and either of them to say how
the run has ended.  A `dict` gives rights out, since `setdefault` is one step of the interpreter.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from typing import Final

from shoal.observe.errors import RunInterrupted

OVERDUE: Final = "overdue"
"""It takes longer than it may."""

UNWANTED: Final = "unwanted"
"""Nobody wants what it gives any more."""

_RAISING: Final = "raising"
_REPORTING: Final = "reporting"
_LOOP: Final = "loop"
_THREAD: Final = "thread"


class Interruption:
    """Of one run: whether, why and how it is ended before it ends by itself."""

    __slots__ = ("_is_raised", "_raised", "_rights", "_thread", "timeout_seconds", "why")

    def __init__(self, timeout_seconds: float) -> None:
        """`timeout_seconds`: how long the run may take."""
        self.timeout_seconds = timeout_seconds
        self.why = ""
        """Why it is to end; "": it may go on."""
        self._thread = 0
        self._rights: dict[str, str] = {}
        self._is_raised = False
        self._raised = allocate_lock()  # held until it is; a plain lock, as it is never left held
        self._raised.acquire()

    # --- for the loop ------------------------------------------------------------------------

    def interrupt(self, why: str) -> None:
        """Have the run end: it meets `RunInterrupted` at the next step of its Python code.

        Nothing is raised in a thread that waits in native code, until it comes back; nor in one
        that has said `close`, or is interrupted already.
        """
        self.why = self.why or why  # before the right is taken: `begin` looks the other way round
        if self._rights.setdefault(_RAISING, _LOOP) is _THREAD or self._is_raised:
            return
        try:
            if self._thread:
                _raise_in(self._thread, RunInterrupted)
        finally:  # or the thread would wait for ever
            self._is_raised = True
            self._raised.release()

    def give_up(self) -> bool:
        """Whether the loop says how it has ended, and no more its thread."""
        is_ours = self._rights.setdefault(_REPORTING, _LOOP) is _LOOP
        if is_ours:
            _settle()  # its thread may wait in native code for ever, with what is raised there
        return is_ours

    # --- for the thread of the run -----------------------------------------------------------

    def begin(self) -> None:
        """The calling thread executes the run.

        Raises:
            RunInterrupted: it is to end already.
        """
        self._thread = get_ident()
        if self.why:
            raise RunInterrupted

    def close(self) -> None:
        """Nothing is raised in this thread from the end of this call on; again does no harm.

        That is so too if it ends by what it was to prevent.
        """
        if self._rights.setdefault(_RAISING, _THREAD) is _THREAD:
            return
        if not self._is_raised:
            self._raised.acquire()  # the loop is about to
        _settle()  # what has not struck yet never does

    def may_report(self) -> bool:
        """Whether the thread says how it has ended; False: it was given up, and has no slot."""
        return self._rights.setdefault(_REPORTING, _THREAD) is _THREAD


class _Settled(BaseException):
    """Takes the place of what is about to be raised in a thread."""


def _settle() -> None:
    """Have nothing be about to be raised in the calling thread.

    Something is raised and caught, as withdrawing it is not enough: up to Python 3.12 a mark of the
    interpreter stays set until an exception strikes somewhere.  All threads look for it at each
    step meanwhile, and with a profiler or a tracer those of 3.11 never come to do anything else.
    """
    other: BaseException | None = None
    try:
        try:
            _raise_in(get_ident(), _Settled)
            _go_on()
        except _Settled:
            raise
        except BaseException as error:  # of a signal, and ours may still be on its way
            other = error
            _go_on()
    except _Settled:
        pass
    if other is not None:
        raise other


def _go_on() -> None:
    """Take enough steps for an exception to strike, and no more: it may have struck a finaliser."""
    for _ in range(100):
        continue


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have `error` raised in a thread at its next step, in place of what was about to be."""
    import ctypes  # few workers ever need it

    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(thread), ctypes.py_object(error))
