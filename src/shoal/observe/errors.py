"""What a view can't do, and what tasks and services are told: what, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.errors import ShoalError
from shoal.units import format_seconds


class ReadOnlyView(AttributeError):
    """A program tried to change something through a view of another process."""

    def __init__(self, what: str, name: str) -> None:
        """`what` is viewed; `name`: the attribute that was to be changed."""
        super().__init__(what, name)
        self.what = what
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name!r} can't be changed here: this is a view of {self.what}, which is in a "
            "process of its own.\n"
            "Change it where it is: client.run_on_scheduler(function), whose argument "
            "`dask_scheduler` is the scheduler; or make the cluster with processes=False."
        )


class NotInView(AttributeError):
    """A program asked a view for something that is not told over the wire."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(what, name)
        self.what = what
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name!r} can't be seen from here: this is a view of {self.what}, which is in a "
            "process of its own, and it does not tell everything.\n"
            "Ask where it is: client.run_on_scheduler(lambda dask_scheduler: ...); or make the "
            "cluster with processes=False."
        )


class ViewWouldBlock(RuntimeError):
    """A view has to ask another process, and its caller is on the loop that would be asked by."""

    def __init__(self, name: str) -> None:
        """`name`: of the cluster."""
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"The scheduler of the cluster {self.name!r} is in a process of its own, and can't be "
            "asked without waiting, which an event loop must not do.\n"
            "Await it instead: client.run_on_scheduler(function), client.who_has() and the like; "
            "cluster.scheduler_info needs no waiting."
        )


class PluginUnknown(ShoalError, ValueError):
    """A plugin was to be removed that is not there."""

    def __init__(self, name: str, where: str) -> None:
        """`where`: such as "the scheduler"."""
        super().__init__(name, where)
        self.name, self.where = name, where

    def __str__(self) -> str:
        return (
            f"Could not find plugin {self.name!r}: {self.where} has none of that name. It was "
            "removed before, or is registered under another name: give it one with "
            "client.register_plugin(plugin, name=...)."
        )


class HookCancelled(ShoalError, RuntimeError):
    """A plugin's hook has cancelled something of its own, and let the CancelledError through."""

    def __init__(self, name: str, hook: str) -> None:
        """`name`: of the plugin."""
        super().__init__(name, hook)
        self.name, self.hook = name, hook

    def __str__(self) -> str:
        return (
            f"The hook {self.hook} of {self.name!r} ended in a CancelledError, though "
            "nobody has cancelled it: something that it awaits was cancelled. Catch that there."
        )


class PreloadFailed(ShoalError):
    """A preload can't be read or found."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name, self.why = name, why

    def __str__(self) -> str:
        return (
            f"The preload {self.name!r} can't be used: {self.why}. It is a module's name, a .py "
            "file, a URL, or a piece of Python; see the setting `preload`."
        )


class NoNannyHere(ShoalError, RuntimeError):
    """Something was asked of a worker's nanny, and it has none."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return (
            f"The worker at {self.worker} has no nanny that could be asked: it was started with "
            "--no-nanny, or lives in the process of its cluster (processes=False). Start workers "
            "as processes of their own."
        )


class UnknownDumpFormat(ShoalError, ValueError):
    """A dump is to be written, or was written, in a format that there is not."""

    def __init__(self, format: str, known: Sequence[str]) -> None:
        super().__init__(format, list(known))
        self.format, self.known = format, list(known)

    def __str__(self) -> str:
        known = " or ".join(map(repr, self.known))
        return f"Unsupported format {self.format!r}. Possible values are {known}."


class InstallFailed(ShoalError, RuntimeError):
    """Packages could not be installed."""

    def __init__(self, tool: str, why: str) -> None:
        """`tool`: pip or conda; `why`: what it has written."""
        super().__init__(tool, why)
        self.tool, self.why = tool, why

    def __str__(self) -> str:
        return (
            f"{self.tool} install failed: {self.why}\nTry the same command by hand on that host, "
            "with the Python that the cluster runs on."
        )


class UnknownMode(ShoalError, ValueError):
    """A folder was to be sent to nobody that there is."""

    def __init__(self, mode: str, known: tuple[str, ...]) -> None:
        super().__init__(mode, known)
        self.mode, self.known = mode, known

    def __str__(self) -> str:
        return (
            f"{self.mode!r} is not supported as mode=: it says whom the folder is sent to, and is "
            f"one of {', '.join(map(repr, self.known))}."
        )


class OperationUnknown(ShoalError, AttributeError):
    """An operation was called that a service does not have."""

    def __init__(self, service: str, name: str, known: Sequence[str], reason: str = "") -> None:
        """`service`: such as "the scheduler"; `reason`: why it has none, if that is known."""
        super().__init__(service, name, list(known), reason)
        self.service, self.name, self.known, self.reason = service, name, list(known), reason

    def __str__(self) -> str:
        lack = f"{self.service} has no operation {self.name!r}."
        lack = f"{lack[0].upper()}{lack[1:]} {self.reason}".rstrip()
        return (
            f"{lack} It answers to: {', '.join(self.known)}. Programs add their own: "
            f"handlers[{self.name!r}] = function."
        )


class OperationBlocked(ShoalError, ValueError):
    """An operation was called that a service must not answer to."""

    def __init__(self, service: str, name: str) -> None:
        super().__init__(service, name)
        self.service, self.name = service, name

    def __repr__(self) -> str:
        return f"OperationBlocked({str(self)!r})"

    def __str__(self) -> str:
        service = self.service.removeprefix("the ")
        return (
            f"The {self.name!r} handler has been explicitly disallowed in "
            f"{service[:1].upper()}{service[1:]}, by the setting `blocked-handlers` or the "
            "argument of that name."
        )


class NotForThisCall(ShoalError, ValueError):
    """The message of a broadcast has no operation."""

    def __init__(self, message: object) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return (
            "A message names an operation and its arguments, as in "
            f'{{"op": "ping", "delay": 1}}, and {self.message!r} names none.'
        )


class NotInTask(ShoalError, ValueError):
    """Something was called that is for code of tasks."""

    def __init__(self, name: str) -> None:
        """`name`: of the function."""
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"No worker found: {self.name}() is for code that runs in a task, and this does not. "
            "Call it in a function that was submitted, in the thread that the task runs in."
        )


class RunInterrupted(BaseException):
    """Raised inside of a task that is to end: it takes longer than it may, or was cancelled.

    It is no `Exception`, so that what tries again after any error ends as well.  A task may catch
    it to clean up, or to return what it has so far, within the seconds that are left for that.
    """


class TaskTimeout(ShoalError, TimeoutError):
    """A task took longer than was said that it may."""

    def __init__(
        self,
        key: str,
        limit_seconds: float,
        seconds: float,
        where: str = "",
        is_over: bool = True,
    ) -> None:
        """`seconds`: since it began; `where`: it was last seen; `is_over`: whether it has ended."""
        super().__init__(key, limit_seconds)  # an OSError keeps no more than two
        self.key, self.limit_seconds, self.seconds = key, limit_seconds, seconds
        self.where, self.is_over = where, is_over

    def __reduce__(self) -> tuple[Any, ...]:
        facts = (self.key, self.limit_seconds, self.seconds, self.where, self.is_over)
        return type(self), facts, self.__dict__

    def __str__(self) -> str:
        how = "It was ended"
        if not self.is_over:
            where = f", at {self.where}," if self.where else ""
            how = f"It was told to end, and goes on{where} in a thread that its worker has given up"
        return (
            f"Task {self.key!r} took longer than it may: it ran for "
            f"{format_seconds(self.seconds)}, and its timeout is "
            f"{format_seconds(self.limit_seconds)}. {how}.\n"
            "Allow more (timeout= of submit, map, compute and dask.annotate), give it less to do, "
            "or have it tried again (retries=)."
        )


class NoConversation(ShoalError, RuntimeError):
    """A handler wants to read from, or write to, a caller that has no connection of its own."""

    def __init__(self, service: str) -> None:
        super().__init__(service)
        self.service = service

    def __str__(self) -> str:
        return (
            "This operation is a conversation, and whoever calls it has no connection of its own. "
            f"Call it over one: `async with rpc({self.service!r}) as service: ...`."
        )


class UnusableMemoryLimit(ShoalError, ValueError):
    """A worker was to have a limit of memory that makes no sense."""

    def __init__(self, limit: object, why: str) -> None:
        super().__init__(limit, why)
        self.limit, self.why = limit, why

    def __str__(self) -> str:
        return (
            f"memory_limit={self.limit} can't be: {self.why}. Say bytes, a text such as "
            '"2 GiB", a fraction of the host\'s memory up to 1, "auto", or 0 for no limit.'
        )


class TooManyThreads(ShoalError, ValueError):
    """A worker was to have more threads than there can be."""

    def __init__(self, nthreads: int, most: int) -> None:
        """`most`: threads that the system lets anybody have."""
        super().__init__(nthreads, most)
        self.nthreads, self.most = nthreads, most

    def __str__(self) -> str:
        return (
            f"nthreads={self.nthreads} can't be: this system allows no more than {self.most} "
            "threads. Leave it out for one thread for each CPU, or say fewer."
        )


class NoSchedulerGiven(ShoalError, ValueError):
    """A worker or nanny was made without a word about its scheduler, or with a file that says
    nothing."""

    def __init__(self, what: str, path: str = "") -> None:
        """`what`: the class; `path`: of the scheduler file that was given."""
        super().__init__(what, path)
        self.what, self.path = what, path

    def __str__(self) -> str:
        if self.path:
            return (
                f"The scheduler file {self.path} is not there, or names no address. Start the "
                "scheduler first, with the same scheduler_file=, or give its address."
            )
        return (
            f"Which scheduler? Give its address, as in {self.what}('tcp://host:8786'), or "
            "scheduler_file=, or set DASK_SCHEDULER_ADDRESS."
        )
