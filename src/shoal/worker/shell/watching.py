"""What the machine of a worker has recorded, told to the plugins that want to know of transitions.

There is a watcher only while some plugin has that hook.  It stands in the place of the story, looks
at each record after the step that left it, and says in the words of old what has become of the key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from shoal.ids import Key
from shoal.observe.hooking import PluginTable
from shoal.protocol.keys import from_canonical
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import FAILED, FINISHED, WITHDRAWN, Run

Record = tuple[float, Key, str, int]

GONE: Final = ("released", "forgotten")

PATHS: Final[dict[str, tuple[str, ...]]] = {
    words.WAITS: ("waiting",),
    words.TO_THREADS: ("waiting", "ready"),
    FINISHED: ("waiting", "ready", "executing", "memory"),
    FAILED: ("waiting", "ready", "executing", "error", *GONE),
    WITHDRAWN: GONE,
    words.RETURNED: GONE,
    words.ABANDONED: GONE,
    words.UNAVAILABLE: GONE,
    words.NOT_TRANSFERRED: ("error", *GONE),
    words.ARRIVED: ("fetch", "flight", "memory"),
    words.PUT_HERE: ("memory",),
    words.FREED: GONE,
    words.GONE: GONE,
}
"""What is recorded -> the states that the key has been in since; those that it had are skipped."""

STARTED: Final = ("waiting", "ready", "executing")


class _Told(deque[Record]):
    """A story that is told on."""

    def __init__(self, records: Iterable[Record], maxlen: int | None) -> None:
        super().__init__(records, maxlen)
        self.heard: list[Record] = []

    def append(self, record: Record) -> None:
        """Keep it, and tell."""
        super().append(record)
        self.heard.append(record)


class RunWatcher:
    """Tells plugins of the transitions of a worker's tasks."""

    def __init__(self, state: WorkerState, table: PluginTable) -> None:
        """Told of everything that is recorded from now on."""
        self._machine_state = state
        self._table = table
        self._states: dict[Key, str] = {}
        self._epoch = state.epoch
        self._story = state.story = _Told(state.story, state.story.maxlen)
        self._is_telling = False

    def end(self) -> None:
        """Nobody wants to know any more."""
        state = self._machine_state
        state.story = deque(state.story, state.story.maxlen)

    def begun(self, run: Run) -> None:
        """A thread has taken it up, a moment ago."""
        if self._states.get(run.key) == "ready":
            self._call(self._moves(run.key, STARTED))

    def tell(self) -> None:
        """A step is over."""
        if self._is_telling or not self._story.heard:
            return
        if self._machine_state.epoch != self._epoch:  # what it held is gone, without a word
            self._epoch = self._machine_state.epoch
            self._states.clear()
        self._is_telling = True
        try:
            while self._story.heard:
                heard, self._story.heard = self._story.heard, []
                moves: list[tuple[Key, str, str]] = []
                for _, key, what, _ in heard:
                    path = PATHS.get(what)
                    if path is not None:
                        moves += self._moves(key, path)
                self._call(moves)
        finally:
            self._is_telling = False

    def _moves(self, key: Key, path: tuple[str, ...]) -> list[tuple[Key, str, str]]:
        """The transitions along `path`, from where the key is."""
        state = self._states.get(key, "released")
        if state in path:
            path = path[path.index(state) + 1 :]
        moves = []
        for following in path:
            if following != state:
                moves.append((key, state, following))
                state = following
        if state == "forgotten":
            self._states.pop(key, None)
        else:
            self._states[key] = state
        return moves

    def _call(self, moves: list[tuple[Key, str, str]]) -> None:
        if moves:
            self._table.call_for_each(
                "transition",
                [((from_canonical(key), start, finish), {}) for key, start, finish in moves],
            )
