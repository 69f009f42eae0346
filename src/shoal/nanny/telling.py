"""What people are told of a worker's deaths: in the log, and as the reason why there is none."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from shoal.errors import ShoalError
from shoal.nanny.errors import CrashLoop, MemoryTooSmall, ProcessDied
from shoal.nanny.machine import Effect, NannyMachine, RestartSettings, Start, WakeAfter
from shoal.nanny.process import ServiceProcess
from shoal.observe.reasons import SCHEDULER_GONE

_logger = logging.getLogger("shoal.nanny")


def tell_of_death(
    what: str,
    process: ServiceProcess | None,
    cause: str,
    machine: NannyMachine,
    effects: Iterable[Effect],
) -> None:
    """One line for the log, with what `machine` has decided; none if it is told otherwise."""
    for effect in effects:
        match effect:
            case Start():
                _say_death(what, process, cause, "Another takes its place")
            case WakeAfter(seconds):
                ndeaths, most = machine.row
                row = (
                    f"death {ndeaths} of at most {most} in a row"
                    if most
                    else f"death {machine.ndeaths} in a row, each soon after its start"
                )
                _say_death(what, process, cause, f"Another in {seconds:.3g} s; {row}")


def _say_death(what: str, process: ServiceProcess | None, cause: str, next_step: str) -> None:
    where = "just started"
    if process is not None:
        where = f"{process.address or where}, process id {process.pid}"
    _logger.warning("The process of %s (%s) died: %s. %s", what, where, cause, next_step)


def told_by_heir(process: ServiceProcess | None, cause: str) -> dict[str, Any]:
    """What its successor tells the scheduler of a process that has ended: settings of a worker."""
    death = process.death if process is not None else None
    return {
        "predecessor": process.pid or 0 if process is not None else 0,
        "predecessor_death": cause,
        "predecessor_memory_bytes": death.for_memory_nbytes if death is not None else 0,
        "predecessor_limit_bytes": death.memory_limit_nbytes if death is not None else 0,
    }


def tell_of_end(what: str, reason: str, scheduler: str) -> None:
    """It has left, and that is as it should be.  `scheduler`: where it was found; "": nowhere."""
    if reason == SCHEDULER_GONE:
        where = f" at {scheduler}" if scheduler else ""
        _logger.warning("The scheduler%s is gone; this worker ends.", where)
    else:
        _logger.info("The process of %s has ended: %s", what, reason)


def failure_of(
    what: str,
    process: ServiceProcess | None,
    causes: tuple[str, ...],
    settings: RestartSettings,
    *,
    by_memory_limit: bool,
) -> ShoalError:
    """Why the worker is given up.  `process`: the last one."""
    death = process.death if process is not None else None
    last_lines = death.last_lines if death is not None else ""
    if by_memory_limit:
        return MemoryTooSmall(what, causes, settings.memory_steady_seconds, last_lines)
    return CrashLoop(what, causes, settings.steady_seconds, last_lines)


def cause_of(error: Exception) -> str:
    """Why there was no worker, in a sentence."""
    if isinstance(error, ProcessDied):
        last = error.last_lines.rpartition("\n")[2]
        return f"{error.death.describe()} as it started" + (f": {last}" if last else "")
    if isinstance(error, ShoalError):
        return str(error).partition("\n")[0]
    return f"it could not be started: {error}"
