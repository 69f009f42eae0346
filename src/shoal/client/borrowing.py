"""Futures of another client, of the same scheduler, as what tasks of this client need.

What two clients say comes over two connections.  So that the scheduler knows a task before it hears
that we want it, we send nothing more until it has heard what the other client said; and so that the
other's release does not come before our want, its future is kept until that was heard.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Final
from weakref import WeakKeyDictionary

from dask._task_spec import Alias, GraphNode

from shoal.client.errors import ForeignFuture
from shoal.client.future import Future
from shoal.client.machine import UNRESOLVED, Record
from shoal.client.session import Session, sessions_of_process
from shoal.errors import ShoalError
from shoal.ids import Key
from shoal.protocol.keys import to_canonical
from shoal.protocol.questions import WhoHas

FOLLOW_SECONDS_MAX: Final = 10.0
"""For another client to get through to the scheduler: its loop may be blocked, or what it sends be
large.  After that our task fails if its input is not known."""

_PLAIN: Final = frozenset((int, float, str, bytes, bool, type(None), FunctionType, type))
"""Types of most parts of tasks, in which there is no future."""


class Borrowing:
    """What a client has of others' futures."""

    def __init__(self, session: Session, face: Any) -> None:
        """`face`: the client that the user holds."""
        self._session = session
        self._face = face
        self._ours: WeakKeyDictionary[Future, Future] = WeakKeyDictionary()  # another's -> ours

    def record_of(self, future: Future) -> Record:
        """What is known here of another's future; it is wanted for as long as that one is there.

        Cost: 20 us, and two questions to the scheduler for all that come at once; nobody waits for
        their answers.

        Raises:
            ForeignFuture: it is a client's of another scheduler, or of one that is closed.
        """
        ours, other = self._session, future.face.session
        if not _have_one_scheduler(ours, other):
            raise ForeignFuture(future.key)
        mine = self._ours.get(future)
        if mine is None:
            if future.record.status in UNRESOLVED:
                _follow(ours, other)
            mine = self._ours.setdefault(future, Future(future.key, self._face))
            kept = [future]
            _once_heard(ours, kept.clear)
        return mine.record


def lenders(ours: Session) -> list[Session]:
    """The other clients of this process whose futures a graph of ours may refer to.

    Those that want something of the same scheduler; and those that were closed, as one of their
    futures may be of something that is published.
    """
    return [
        other
        for other in sessions_of_process()
        if other is not ours
        and (
            bool(other.machine.records) and _have_one_scheduler(ours, other)
            if other.is_open
            else other.address == ours.address
        )
    ]


def want_elsewhere(
    ours: Session, others: Sequence[Session], graph: Mapping[Any, Any], wanted: dict[Any, Record]
) -> None:
    """Want what a graph refers to and other clients of this process want, as this one does not.

    Its tasks' numbers must be reserved after this, as those of what they need come first.

    Args:
        others: see `lenders`.
        wanted: where records go, by the user's key, each with one more future that is the caller's.

    Cost: 1 us for each task in dask's new form, 0.1 us for each part of one in the old form, and
    0.1 ms for each key that is found, which is then wanted twice for a moment.
    """
    lacking: dict[Any, Key] = {}
    for key in _unmade(graph):
        if key not in wanted and key not in lacking:
            canonical = to_canonical(key)
            if canonical not in ours.machine.records:
                lacking[key] = canonical
    for other in others:
        if not lacking:
            return
        if other.is_open:
            _want_those_of(ours, other, lacking, wanted)
    for key, canonical in lacking.items():
        task = graph.get(key)
        if isinstance(task, Future) and task.face.session in others:
            wanted[key] = ours.want(canonical)  # what the scheduler does not know is cancelled


def _unmade(graph: Mapping[Any, Any]) -> Iterator[Any]:
    """Keys that tasks need and that no task makes; some more than once."""
    seen: set[int] = set()
    for key, task in graph.items():
        if isinstance(task, Future) or (isinstance(task, Alias) and task.target == key):
            yield key
        elif isinstance(task, GraphNode):
            yield from task.dependencies.difference(graph)
        else:
            yield from [needed for needed in _futures_in(task, seen) if needed not in graph]


def _futures_in(task: Any, seen: set[int]) -> Iterator[Any]:
    """Keys of the futures in a task of the old form; what was `seen` is not looked at again."""
    stack = [task]
    while stack:
        part = stack.pop()
        if isinstance(part, Future):
            yield part.key
        elif isinstance(part, (list, tuple, dict)) and id(part) not in seen:
            seen.add(id(part))
            parts = part.values() if isinstance(part, dict) else part
            stack.extend([inner for inner in parts if type(inner) not in _PLAIN])


def _want_those_of(
    ours: Session, other: Session, lacking: dict[Any, Key], wanted: dict[Any, Record]
) -> None:
    """Want what `other` wants of it, which then is `wanted` and no more `lacking`."""
    held: list[_Hold] = []
    found: list[Any] = []
    is_unresolved = False
    with other.lock:
        for key, canonical in lacking.items():
            record = other.machine.records.get(canonical)
            if record is not None:
                other.machine.hold(record)
                held.append(_Hold(other, record))
                found.append(key)
                is_unresolved = is_unresolved or record.status in UNRESOLVED
    if not found:
        return
    if is_unresolved:
        _follow(ours, other)
    for key in found:
        wanted[key] = ours.want(lacking.pop(key))
    _once_heard(ours, held.clear)


class _Hold:
    """Keeps what another client wants, until nothing refers to this any more."""

    def __init__(self, session: Session, record: Record) -> None:
        """`record`: with one more future, which is ours."""
        self._session, self._record = session, record

    def __del__(self) -> None:
        self._session.collect(self._record)


def _have_one_scheduler(ours: Session, other: Session) -> bool:
    """Whether both are connected to it, or will be once they are back."""
    if ours.is_away or other.is_away:
        return ours.is_open and other.is_open and ours.address == other.address
    epoch = ours.machine.epoch
    return epoch is not None and other.machine.epoch == epoch  # an epoch is one scheduler's


def _follow(ours: Session, other: Session) -> None:
    """Send nothing of ours until the scheduler has heard what `other` has said up to now."""
    mark = ours.hold_back(FOLLOW_SECONDS_MAX)
    _once_heard(other, lambda: ours.go_on(mark))


def _once_heard(session: Session, then: Callable[[], object]) -> None:
    """Call `then` once the scheduler has heard what was said, or never will."""
    session.state_of(_Questions).ask(session, then)


class _Questions:
    """Whose answers tell that the scheduler has heard what was said before; those of one session.

    Whoever comes before a question is sent has his answer by it as well.  A session that is held
    back later, as it follows another one, asks all the same: that one may follow it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[bool, list[Callable[[], object]]] = {False: [], True: []}
        """By whether what was said before is on its way, whatever is held back later."""

    def ask(self, session: Session, then: Callable[[], object]) -> None:
        """Call `then` once all was heard that was said up to now; from any thread."""
        passes = not session.is_held_back
        with self._lock:
            self._waiting[passes].append(then)
            is_first = len(self._waiting[passes]) == 1
        if not is_first:
            return
        asking = self._ask(session, passes)
        try:
            assert session.loop is not None
            asyncio.run_coroutine_threadsafe(asking, session.loop)
        except RuntimeError:  # its loop has ended
            asking.close()
            self._answer(self._take(passes))

    async def _ask(self, session: Session, passes: bool) -> None:
        waiting = self._take(passes)
        try:
            await session.call(lambda request: WhoHas(request, []), passes_holds=passes)
        except (ShoalError, OSError):
            pass  # the connection has ended, and nothing more is heard
        finally:
            self._answer(waiting)

    def _take(self, passes: bool) -> list[Callable[[], object]]:
        with self._lock:
            waiting, self._waiting[passes] = self._waiting[passes], []
        return waiting

    def _answer(self, waiting: list[Callable[[], object]]) -> None:
        for then in waiting:
            then()
