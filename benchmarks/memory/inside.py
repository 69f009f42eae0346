"""A preload of workers: each writes down that it is there, its changes of status, and late timers.

It is loaded by its path, on both sides, and needs nothing of shoal.  The folder is named by the
variable `WATCH_FOLDER`; each worker process appends lines of JSON to a file of its own there.
"""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

FOLDER = "WATCH_FOLDER"
TICK_SECONDS = 0.01
NOTED_SECONDS_MIN = 0.02
"""A timer that was less late than that is not worth a line."""

tasks: set["asyncio.Task[None]"] = set()


async def dask_setup(worker: Any) -> None:
    """Watch, from the worker's loop, until the process ends."""
    path = Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl"
    task = asyncio.create_task(_watch(worker, path))
    tasks.add(task)  # or it may be collected as it waits
    task.add_done_callback(tasks.discard)


async def _watch(worker: Any, path: Path) -> None:
    said = ""
    longest = {"late": NOTED_SECONDS_MIN, "busy": NOTED_SECONDS_MIN}
    with path.open("a", encoding="utf-8", buffering=1) as lines:

        def say(**words: Any) -> None:
            lines.write(json.dumps({"at": time.time(), **words}) + "\n")

        say(name=str(worker.name))
        while True:
            status = str(getattr(worker.status, "name", worker.status))
            if status != said:
                said = status
                say(status=status)
            due_at, spent = time.perf_counter() + TICK_SECONDS, time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            found = {
                "late": time.perf_counter() - due_at,
                "busy": time.thread_time() - spent,
            }
            for kind, seconds in found.items():
                if seconds > longest[kind]:
                    longest[kind] = seconds
                    say(**{kind: seconds})
