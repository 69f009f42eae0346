"""Errors of the client that a user may see: what happened, why, and what to do."""

import sys
from collections.abc import Sequence, Set
from concurrent.futures import CancelledError
from typing import Any

from shoal.errors import ShoalError


def _in_words(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{1000 * seconds:g} ms"


class CyclicGraph(ShoalError, ValueError):
    """A graph has tasks that wait for themselves."""

    def __init__(self, cycle: Sequence[object]) -> None:
        """`cycle`: keys, each depending on the next, and the last on the first."""
        super().__init__(list(cycle))
        self.cycle = list(cycle)

    def __str__(self) -> str:
        shown = self.cycle if len(self.cycle) <= 8 else [*self.cycle[:7], "...", self.cycle[-1]]
        path = " -> ".join(str(key) for key in [*shown, self.cycle[0]])
        return (
            f"The graph has a cycle, so none of its tasks could ever start: {path} "
            "(each depends on the next).\nRemove one of these dependencies."
        )


class MissingKey(ShoalError, KeyError, CancelledError):
    """A key is asked for that nothing defines, or that nothing defines any more: the futures of a
    collection may have been released."""

    def __init__(self, key: object, dependent: object = None) -> None:
        """`dependent`: the task that needs it; None: the caller asked for it."""
        super().__init__(key, dependent)
        self.key, self.dependent = key, dependent

    def __str__(self) -> str:
        who = "It was asked for" if self.dependent is None else f"Task {self.dependent!r} needs it"
        return (
            f"Nothing was computed, reason: lost dependencies. {self.key!r} is neither a key of "
            f"the graph nor a live future of this client. {who}.\n"
            "Add it to the graph, or keep a reference to its future."
        )


class UnpicklableTask(ShoalError, TypeError):
    """A task can't travel to a worker."""

    def __init__(self, key: object, why: str) -> None:
        super().__init__(key, why)
        self.key, self.why = key, why

    def __str__(self) -> str:
        return (
            f"Could not serialize the task {self.key!r}: {self.why}.\n"
            "Workers are other processes: open files, locks and connections inside the function "
            "instead of passing them to it."
        )


class UnpicklableValue(ShoalError, TypeError):
    """A value can't travel: to the workers that would hold it, or to the scheduler."""

    def __init__(self, kind: str, name: object, why: str) -> None:
        """`kind`: name of its type; `name`: as it was to be known."""
        super().__init__(kind, name, why)
        self.kind, self.name, self.why = kind, name, why

    def __str__(self) -> str:
        return (
            f"Could not serialize {self.name!r}, a value of type {self.kind}: {self.why}.\n"
            "Other processes are to have it: give them what it is made of, a path instead of an "
            "open file, and make it there."
        )


class UnpicklableClient(ShoalError, TypeError):
    """A client was to be sent: with a function that refers to it, say."""

    def __str__(self) -> str:
        return (
            "it contains a client, whose connection is this process's.\n"
            "A task has a client of its own: call get_client() inside of the function, instead of "
            "using the client from outside"
        )


class NoClient(ShoalError, ValueError):
    """Something needs a client, and there is none."""

    def __init__(self, what: str = "", why: str = "") -> None:
        """`what` needs it; `why` there is none, and what to do, if that is known better here."""
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        known_as = "distributed" if "distributed" in sys.modules else "shoal"
        advice = self.why or (
            "Start a client and point it to the scheduler address\n"
            f"  from {known_as} import Client\n"
            "  client = Client('ip-addr-of-scheduler:8786')"
        )
        return f"No clients found{' for ' + self.what if self.what else ''}\n{advice}"


class BlockingCall(ShoalError, RuntimeError):
    """A blocking call was made on the thread that would have to answer it."""

    def __str__(self) -> str:
        return (
            "This call would wait for the event loop that it was made on, for ever.\n"
            "In coroutines and callbacks use the asynchronous client: "
            "`async with Client(address, asynchronous=True) as client: await client.gather(...)`."
        )


class ClientClosed(ShoalError, RuntimeError):
    """A client was used that is not connected (any more, or yet)."""

    def __init__(self, name: str, status: str, why: str = "") -> None:
        """`why`: as the scheduler said when it ended the connection."""
        super().__init__(name, status, why)
        self.name, self.status, self.why = name, status, why

    def __str__(self) -> str:
        why = f" The reason is: {self.why}" if self.why else ""
        advice = (
            "Await it first: `client = await Client(..., asynchronous=True)`, or use `async with`."
            if self.status == "newly-created"
            else "Make a new Client to go on."
        )
        return f"The client {self.name} is {self.status}, so it can't do this.{why} {advice}"


class ForeignFuture(ShoalError, ValueError, CancelledError):
    """A future was given to a client that did not make it, or that has another scheduler."""

    def __init__(self, key: object) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"Futures created by another client can't be used here: {self.key!r} is one.\n"
            "Use the client that made it. Where both have one scheduler, tasks may need it, and "
            "Future(key, client) makes one of this client."
        )


class UnboundFuture(ShoalError, RuntimeError):
    """A future that came from elsewhere finds no client to ask."""

    def __init__(self, key: object) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"The future {self.key!r} is not properly initialized: it came from another process, "
            "and there is no client here that could ask for its result.\n"
            "Make a Client first, or call future.bind_client(client)."
        )


class NoWorkers(ShoalError, TimeoutError):
    """Something needs workers, and none came in time."""

    def __init__(self, what: str, timeout_seconds: float) -> None:
        super().__init__(what, timeout_seconds)
        self.what, self.timeout_seconds = what, timeout_seconds

    def __str__(self) -> str:
        return (
            f"No valid workers found to {self.what} within {self.timeout_seconds:g} s.\n"
            "Start workers (`shoal worker ADDRESS`), check `workers=`, or allow more time with "
            "`timeout=`."
        )


class WorkersLate(ShoalError, TimeoutError):
    """Fewer workers than asked for came in time."""

    def __init__(self, nworkers: int, nhere: int, timeout_seconds: float) -> None:
        super().__init__(nworkers, nhere, timeout_seconds)
        self.nworkers, self.nhere, self.timeout_seconds = nworkers, nhere, timeout_seconds

    def __str__(self) -> str:
        return (
            f"Only {self.nhere}/{self.nworkers} workers arrived after "
            f"{_in_words(self.timeout_seconds)}.\n"
            "Look into the workers' logs, or wait longer with `timeout=`."
        )


class ResultUnreachable(ShoalError, OSError):
    """A result exists, but no way to it works."""

    def __init__(self, key: object, holders: Sequence[str], why: str) -> None:
        super().__init__(key, list(holders), why)
        self.key, self.holders, self.why = key, list(holders), why

    def __str__(self) -> str:
        where = ", ".join(self.holders) or "nobody"
        return (
            f"The result {self.key!r} is held by {where}, but could not be fetched: {self.why}.\n"
            "Check that this machine or the scheduler reaches the workers' addresses."
        )


class SchedulerFileLate(ShoalError, TimeoutError):
    """The file that tells the scheduler's address did not appear."""

    def __init__(self, path: str, timeout_seconds: float) -> None:
        super().__init__(path, timeout_seconds)
        self.path, self.timeout_seconds = path, timeout_seconds

    def __str__(self) -> str:
        return (
            f"The scheduler file {self.path!r} did not appear, or named no address, within "
            f"{self.timeout_seconds:g} s.\n"
            "Is the scheduler running with the same --scheduler-file, on a shared file system?"
        )


class UnknownWait(ShoalError, NotImplementedError, ValueError):
    """There is no such thing to wait for."""

    def __init__(self, given: object, choices: Sequence[str]) -> None:
        super().__init__(given, list(choices))
        self.given, self.choices = given, list(choices)

    def __str__(self) -> str:
        return f"return_when is one of {', '.join(map(repr, self.choices))}, not {self.given!r}"


class WaitedTooLong(ShoalError, TimeoutError):
    """Futures that were waited for have not ended in time."""

    def __init__(
        self, done: Set[Any], not_done: Set[Any], timeout_seconds: float, why: str = ""
    ) -> None:
        """`done`: the futures that have; `not_done`: those that have not; `why`: some of them."""
        super().__init__(done, not_done, timeout_seconds, why)
        self.done, self.not_done, self.timeout_seconds = done, not_done, timeout_seconds
        self.why = why

    def __str__(self) -> str:
        nall = len(self.done) + len(self.not_done)
        return (
            f"{len(self.not_done)} of {nall} futures have not ended within "
            f"{self.timeout_seconds:g} s.{self.why}\n"
            "The error has them as `not_done`, and the others as `done`; allow more time with "
            "`timeout=`."
        )


class ExecutorShutDown(ShoalError, RuntimeError):
    """Something was submitted to an executor that takes nothing any more."""

    def __str__(self) -> str:
        return (
            "This executor cannot schedule new futures after shutdown. Make another: "
            "client.get_executor()."
        )


class VersionsDiffer(ShoalError, ValueError):
    """Client, scheduler and workers have different versions of what they have in common."""

    def __init__(self, table: str) -> None:
        """`table`: what differs."""
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"{self.table}\nWhat one process pickles another has to load: install the same "
            "versions everywhere, e.g. by one lock file or one image."
        )


class SchedulerFileTaken(ShoalError, ValueError):
    """A client is to write a second scheduler file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"Scheduler file already set: this client has {self.path!r}. Copy that one, or write "
            "another with a new client."
        )


class UploadMissing(ShoalError, FileNotFoundError):
    """A file that is to be sent to the workers is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"There is no file and no folder {self.path!r} here that could be sent to workers."


class SchedulerCanNotImport(UserWarning):
    """A module that was sent to all can be imported by the workers only."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return (
            f"The scheduler can't import {self.path!r}: {self.reason}. Tasks have it all the same; "
            "only plugins of the scheduler, and client.run_on_scheduler, do without."
        )


class TakenKeyWarning(UserWarning):
    """Two calls that differ have one name."""

    def __init__(self, key: object) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"The key {self.key!r} is that of another call, of which there still is a future: its "
            "result is given for this call too. Choose another key, or release that future first."
        )


class LargeGraphWarning(UserWarning):
    """A graph carries data that should travel another way."""


class PluginIsAClass(ShoalError, TypeError):
    """A class was to be registered as a plugin, and not an object of it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name} is a class, and a plugin is an instance of one: register "
            f"{self.name}() instead."
        )


class PluginOfNoKind(ShoalError, TypeError):
    """Something was to be registered as a plugin that is of none of their classes."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name} is a duck-typed plugin: nothing says where it shall live. Let it inherit "
            "from SchedulerPlugin, WorkerPlugin or NannyPlugin, or say where it is to live: "
            "client.register_worker_plugin, register_scheduler_plugin or register_nanny_plugin."
        )


class UnknownMeasure(ShoalError, ValueError):
    """Something was to be sampled of workers' memory that there is not."""

    def __init__(self, measure: str, known: tuple[str, ...]) -> None:
        super().__init__(measure, known)
        self.measure, self.known = measure, known

    def __str__(self) -> str:
        return (
            f"There is no measure {self.measure!r} of workers' memory. There are: "
            f"{', '.join(self.known)}."
        )


class PackageLacking(ShoalError, ImportError):
    """Something was called that needs a package which is not installed."""

    def __init__(self, what: str, package: str) -> None:
        super().__init__(what, package)
        self.what, self.package = what, package

    def __str__(self) -> str:
        return (
            f"{self.what} needs the package {self.package}, which is not installed here: "
            f"pip install {self.package}"
        )


class WouldNotWait(ShoalError, RuntimeError):
    """A block of an asynchronous client was entered by `with`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"{self.what} asks the scheduler as its block begins, which an asynchronous client "
            "has to await. Write `async with`."
        )
