"""What goes wrong while a cluster works: kills, freezes and resets, when a seed says so."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from random import Random
from types import TracebackType

from tests.faults.grounds import Ground

JOIN_SECONDS_MAX = 10.0
FROZEN_SECONDS = (0.5, 3.0)
"""How long a worker stands still, at least and at most."""


class Trouble:
    """Makes some in a thread of its own, while it is entered."""

    def __init__(
        self,
        stage: Ground,
        chance: Random,
        kinds: Sequence[str],
        pause_seconds: tuple[float, float],
    ) -> None:
        """`kinds`: of `kill`, `freeze` and `reset`; `pause_seconds`: between two, at least and at
        most."""
        self.counts: Counter[str] = Counter()
        self.complaints: list[str] = []
        """Why there was no more of it, if somebody could not be asked."""
        self._stage, self._chance = stage, chance
        self._kinds, self._pause_seconds = kinds, pause_seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trouble", daemon=True)

    def __enter__(self) -> Trouble:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join(JOIN_SECONDS_MAX)  # it asks the scheduler, which may be what hangs

    def __str__(self) -> str:
        return ", ".join(f"{self.counts[kind]} {kind}s" for kind in self._kinds)

    def _run(self) -> None:
        try:
            self._go_on()
        except Exception as error:
            self.complaints.append(f"no more trouble: {type(error).__name__}: {error}")

    def _go_on(self) -> None:
        while not self._is_over.wait(self._chance.uniform(*self._pause_seconds)):
            kind = self._chance.choice(self._kinds)
            if kind == "reset":
                for proxy in self._stage.proxies:
                    proxy.reset()
            else:
                pids = sorted(self._stage.workers())
                if not pids:
                    continue
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    self._strike(kind, self._chance.choice(pids))
            self.counts[kind] += 1

    def _strike(self, kind: str, pid: int) -> None:
        if kind == "kill":
            os.kill(pid, signal.SIGKILL)
            return
        os.kill(pid, signal.SIGSTOP)
        self._is_over.wait(self._chance.uniform(*FROZEN_SECONDS))
        os.kill(pid, signal.SIGCONT)
