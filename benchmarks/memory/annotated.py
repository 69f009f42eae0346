"""Resources by annotation, as people paste it: MEM of 2 each, where 3 are offered, or none."""

from __future__ import annotations

import logging
import time
import warnings
from typing import TYPE_CHECKING, Any

from benchmarks.memory.mixed import frame

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

WORD = "MEM"


def annotated(ground: Ground, end: str, threads: int) -> Found:
    """The most tasks that any worker executed at once, as a plugin of workers saw it."""
    import dask

    recorder = make_recorder(ground.module)
    with ground.client(2, threads, "2GiB", resources={WORD: 3}) as client:
        client.register_plugin(recorder(), name="recorder")
        started_at = time.monotonic()
        with dask.annotate(resources={WORD: 2}):
            df = frame(end)
            means = df.groupby("x").mean().compute()
        yield {"compute_seconds": time.monotonic() - started_at, "ngroups": len(means)}
        found = client.run(read_recorder)
        yield {
            "most_at_once": max(most for most, _ in found.values()),
            "executed": sum(ntasks for _, ntasks in found.values()),
        }


def offered_nowhere(ground: Ground, end: str, seconds_max: float) -> Found:
    """After how long, and in what words, a client that waits is told why nothing happens."""
    import dask

    told: list[tuple[float, str]] = []
    started_at = time.monotonic()

    def tell(text: str) -> None:
        if WORD in text and "will be ignored" not in text:  # which is said whatever is offered
            told.append((time.monotonic() - started_at, text))

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(record.getMessage())

    with ground.client(2, 1, "2GiB") as client:
        for name in ("", "distributed", "shoal"):
            logging.getLogger(name).addHandler(Telling())
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: tell(str(message))
            warnings.simplefilter("always")
            started_at = time.monotonic()
            with dask.annotate(resources={WORD: 2}):
                future = client.compute(frame(end).groupby("x").mean())
                try:
                    future.result(timeout=seconds_max)
                except Exception as error:
                    if not told:
                        tell(str(error))
            future.cancel()
        yield {"told": told[0] if told else None}


def make_recorder(module: Any) -> Any:
    """A plugin of workers that counts what executes at once; a local class, that travels whole."""

    class Recorder(module.WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            worker.recorded = [0, 0, set()]
            self.worker = worker

        def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
            recorded = self.worker.recorded
            if finish == "executing":
                recorded[2].add(key)
                recorded[1] += 1
                recorded[0] = max(recorded[0], len(recorded[2]))
            elif start == "executing":
                recorded[2].discard(key)

    return Recorder


def read_recorder(dask_worker: Any) -> tuple[int, int]:
    """The most at once, and how many in all."""
    return dask_worker.recorded[0], dask_worker.recorded[1]
