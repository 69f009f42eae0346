"""Errors of nannies that a user may see: what happened, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import ShoalError, causes_in_words
from shoal.nanny.death import Death


class CannotFork(ShoalError, RuntimeError):
    """Processes shall be forked, and there is nothing to fork from."""

    def __init__(self, what: str, reason: str) -> None:
        """`what`: "the scheduler", "worker 0"."""
        super().__init__(what, reason)
        self.what, self.reason = what, reason

    def __str__(self) -> str:
        return (
            f"The process of {self.what} could not be forked: {self.reason}.\n"
            "The setting shoal.nanny.start-method is 'fork', which allows nothing else; set it to "
            "'auto' or 'spawn' to start a fresh interpreter instead."
        )


class ProcessDied(ShoalError, RuntimeError):
    """A process of the cluster ended before it was ready."""

    def __init__(self, what: str, death: Death) -> None:
        """`what`: "the scheduler", "worker 0"."""
        super().__init__(what, death)
        self.what, self.death = what, death

    @property
    def exit_code(self) -> int | None:
        """As `Death` has it."""
        return self.death.exit_code

    @property
    def last_lines(self) -> str:
        """What it wrote to stderr."""
        return self.death.last_lines

    def __str__(self) -> str:
        if self.exit_code == 1 and self.last_lines and "\n" not in self.last_lines:
            return f"The process of {self.what} could not start: {self.last_lines}"
        said = f" It wrote:\n{self.last_lines}" if self.last_lines else " It wrote nothing."
        if self.death.by_memory_limit:
            return (
                f"The process of {self.what} was {self.death.describe()}, before it was ready."
                f"{said}\nGive it more memory (memory_limit=), or the cluster fewer workers; "
                "dask.config.set({'distributed.worker.memory.terminate': False}) lets workers "
                "grow beyond their limit."
            )
        if self.death.signal:
            return (
                f"The process of {self.what} was {self.death.describe()} before it was ready.{said}"
                "\nStart it again: cluster.scale(n), or a new cluster with fewer workers if memory "
                "is short."
            )
        return (
            f"Cluster failed to start: the process of {self.what} ended before it was ready "
            f"({self.death.describe()}).{said}\n"
            "It runs the same interpreter as this one and imports only shoal, so look for what "
            "differs there: environment variables, limits on memory or processes, a module that "
            "shadows another; or use LocalCluster(processes=False)."
        )


class ProcessLate(ShoalError, TimeoutError):
    """A process of the cluster did not become ready in time."""

    def __init__(self, what: str, timeout_seconds: float, last_lines: str) -> None:
        """`what`: "the scheduler", "worker 0"; `last_lines`: what it wrote to stderr."""
        super().__init__(what, timeout_seconds, last_lines)
        self.what, self.timeout_seconds, self.last_lines = what, timeout_seconds, last_lines

    def __str__(self) -> str:
        said = f" It wrote:\n{self.last_lines}" if self.last_lines else ""
        return (
            f"Cluster failed to start: the process of {self.what} was not ready after "
            f"{self.timeout_seconds:g} s.{said}\n"
            "The machine may be overloaded, or the interpreter slow to load from a network disk; "
            "allow more time with dask.config.set({'distributed.comm.timeouts.connect': '120s'})."
        )


class CrashLoop(ShoalError, RuntimeError):
    """A worker's processes died one after the other, so that no more are started."""

    def __init__(self, what: str, causes: Sequence[str], seconds: float, last_lines: str) -> None:
        """`causes`: of the deaths in a row; `seconds`: none lived that long; `last_lines`: what
        the last one wrote to stderr, if it was not ready yet."""
        super().__init__(what, list(causes), seconds, last_lines)
        self.what, self.causes, self.seconds = what, list(causes), seconds
        self.last_lines = last_lines

    def __str__(self) -> str:
        said = f" The last one wrote:\n{self.last_lines}\n" if self.last_lines else " "
        return (
            f"The process of {self.what} died {len(self.causes)} times in a row, and never lived "
            f"for {self.seconds:g} s or finished a task: {causes_in_words(self.causes)}.{said}"
            "Another would die as well, so none is started. Look at the tasks that run as it dies "
            "(native code, os._exit, memory), or at what workers load as they start; then start "
            "it again, with cluster.scale(n) or await nanny.restart()."
        )


class MemoryTooSmall(CrashLoop):
    """A worker's processes came to their memory limit one after the other."""

    def __str__(self) -> str:
        said = f" The last one wrote:\n{self.last_lines}\n" if self.last_lines else " "
        return (
            f"The process of {self.what} was killed for its memory {len(self.causes)} times in a "
            f"row, each within {self.seconds:g} s of its start: {causes_in_words(self.causes)}."
            f"{said}"
            "Another would be killed as well, so none is started. A task needs more than that, or "
            "its inputs do: what one task uses must be in memory at once, and goes to disk only "
            "before and after it. Give workers more (memory_limit=), or have fewer threads in "
            "each, or make pieces smaller, then start it again, with cluster.scale(n) or await "
            "nanny.restart()."
        )


class StartAbandoned(ShoalError, RuntimeError):
    """Somebody waited for a worker, and somebody else closed it meanwhile."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} was closed before it was ready. Start it again if it is wanted."


class UnknownOption(ShoalError, TypeError):
    """A nanny was given a keyword argument that neither it nor its worker has."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"Neither Nanny nor its worker has an option {self.name}=. help(Nanny) lists them."


class NotPlain(ShoalError, TypeError):
    """An option of a worker or scheduler can't be sent to another process."""

    def __init__(self, option: str, value_type: str) -> None:
        super().__init__(option, value_type)
        self.option, self.value_type = option, value_type

    def __str__(self) -> str:
        return (
            f"The option {self.option} is a {self.value_type}, and options of services in "
            "processes of their own are plain: numbers, texts, lists and mappings. Use "
            "LocalCluster(processes=False) to pass objects."
        )
