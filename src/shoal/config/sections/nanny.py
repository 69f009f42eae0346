"""Settings of nannies."""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from shoal.config.base import AtLeastZero, Positive, Settings

# Tasks are the parallelism; a library that adds threads of its own would have them fight.  And the
# C library has eight pools for each processor of what was freed, which it can't give back well.
PRE_SPAWN: Final = {
    "OMP_NUM_THREADS": 1,
    "MKL_NUM_THREADS": 1,
    "OPENBLAS_NUM_THREADS": 1,
    "NUMEXPR_NUM_THREADS": 1,
    "VECLIB_MAXIMUM_THREADS": 1,
    "MALLOC_ARENA_MAX": 2,
}


class Nanny(Settings, frozen=True, kw_only=True):
    """What a nanny puts into the processes it starts."""

    path: ClassVar[str] = "nanny"

    environ: dict[str, Any] = {}
    """Variables set in the worker's process once it runs."""

    pre_spawn_environ: dict[str, Any] = msgspec.field(default_factory=PRE_SPAWN.copy)
    """Variables that libraries read as they load; one the user has set already wins."""

    start_method: Literal["auto", "fork", "spawn"] = "auto"
    """How processes start: forked from a warm one, which is fast, or spawned, each a fresh
    interpreter; `auto` forks where the system's libraries stand it, which is on Linux."""

    restart_pause_seconds: Annotated[float, Positive] = 0.1
    """A worker that died is replaced at once; after its second death in a row only after this
    long, and after each further one after twice as long, so that a crash loop costs little."""

    restart_pause_seconds_max: Annotated[float, Positive] = 30.0
    """The longest such pause: a cause that goes away by itself is noticed within this long."""

    deaths_max: Annotated[int, Positive] = 8
    """Deaths in a row after which it is not replaced again.  More than a task may survive
    (`allowed-failures`), so that a task which kills workers fails before its workers give up."""

    steady_seconds: Annotated[float, Positive] = 1.0
    """A worker that has lived this long, or has finished a task, is no part of a crash loop:
    deaths are counted anew."""

    memory_deaths_max: Annotated[int, Positive] = 8
    """Deaths in a row by the memory limit after which it is not replaced again, whatever it has
    finished in between: its results don't fit, and to compute them again changes nothing."""

    memory_steady_seconds: Annotated[float, Positive] = 60.0
    """A worker that comes to its memory limit only after this long begins that row anew."""

    threads_max: Annotated[int, AtLeastZero] = 4096
    """Threads that a worker and all processes it starts have together, at most, beside those of its
    tasks, where the system lets nannies see to that (control groups that they may make); 0: any
    number.  A task that starts processes without end then fails, and leaves the machine to
    others."""

    preload: list[str] = []
    preload_argv: list[Any] = []
