"""Every text of an error that a user may see: what happened, why, and what to do.

The facts stay attributes, so that a program may act on them; each class survives pickling, because
most of them travel.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import ClassVar, NamedTuple


class ShoalError(Exception):
    """The base of all errors that shoal raises of its own."""


_CAUSES_SHOWN = 3
_KEYS_SHOWN = 5


def causes_in_words(causes: Sequence[str]) -> str:
    """Each cause once, with how often it was: `"exit code 3 (twice)"`; the last ones, if many."""
    shown = list(Counter(reversed(causes)).items())[:_CAUSES_SHOWN]
    words = []
    for cause, count in shown:
        times = {1: "", 2: " (twice)"}.get(count, f" ({count} times)")
        words.append(cause + times)
    rest = len(causes) - sum(count for _, count in shown)
    return "; ".join(words) + (f"; and {rest} more before" if rest else "")


class Reschedule(Exception):
    """Raised in a task to have it run again, on another worker if another may run it.

    That is no failure: no retry is used up, and it may be raised as often as need be.  Where no
    other worker may run the task, the same one does.
    """


class KilledWorker(ShoalError):
    """A task was running on several workers as each of them died."""

    def __init__(
        self,
        key: str,
        worker: str,
        nfailures: int,
        reason: str = "",
        causes: Sequence[str] = (),
    ) -> None:
        """`worker`: the last that died; `nfailures`: how many did; `reason`: how its connection
        ended; `causes`: of the deaths, as far as their nannies have told."""
        super().__init__(key, worker, nfailures, reason, list(causes))  # args: it travels
        self.task, self.last_worker, self.nfailures, self.reason = key, worker, nfailures, reason
        self.causes = list(causes)

    def __str__(self) -> str:
        how = f" ({self.reason})" if self.reason else ""
        known, nunknown = "", self.nfailures - len(self.causes)
        if self.causes and nunknown > 0:
            known = (
                f"{len(self.causes)} of them died of: {causes_in_words(self.causes)}; what "
                f"{nunknown} died of was not known yet, but the log of whoever started them says "
                "it.\n"
            )
        elif self.causes:
            known = f"They died of: {causes_in_words(self.causes)}.\n"
        return (
            f"Task {self.task!r} was running on {self.nfailures} workers as they died; "
            f"the last was {self.last_worker}{how}.\n{known}"
            "It is not run again, because it may well be what kills them: a crash in native code, "
            "os._exit, or more memory than the worker has.\n"
            "Run the function by itself with the same arguments, or allow more attempts: "
            "dask.config.set({'distributed.scheduler.allowed-failures': N})."
        )


class DataLost(ShoalError, CancelledError):
    """A scattered value is gone: no worker holds it, and nothing can compute it again."""

    BEGINNING: ClassVar = "The scattered value "
    """Of what it says, by which clients tell it from an error of a task."""

    def __init__(self, key: str, worker: str) -> None:
        """`worker`: the last one that held it; "" if that isn't known, or none did."""
        super().__init__(key, worker)
        self.key, self.worker = key, worker

    def __str__(self) -> str:
        if not self.worker:
            return (
                f"{self.BEGINNING}{self.key!r} is gone: its last future was released, or the "
                "client that was to send it left; it can't be computed again.\nKeep a future of "
                "it as long as something made from it may have to be computed again."
            )
        return (
            f"{self.BEGINNING}{self.key!r} was lost with worker {self.worker}, its last "
            "holder; it was not computed by a task, so it can't be computed again.\n"
            "Scatter it once more, or keep copies: client.scatter(value, broadcast=True)."
        )


class InputsUnreachable(ShoalError):
    """A task's inputs exist, but no worker that may run it could fetch them all."""

    def __init__(self, key: str, inputs: Sequence[str], worker: str, nattempts: int) -> None:
        """`inputs`: keys that could not be fetched; `worker`: the last that tried."""
        super().__init__(key, list(inputs), worker, nattempts)
        self.key, self.inputs, self.worker, self.nattempts = key, list(inputs), worker, nattempts

    def __str__(self) -> str:
        names = ", ".join(repr(name) for name in self.inputs[:5])
        more = f" and {len(self.inputs) - 5} more" if len(self.inputs) > 5 else ""
        return (
            f"Task {self.key!r} could not get its inputs {names}{more}: {self.nattempts} attempts "
            f"to fetch them failed, the last on {self.worker}.\n"
            "The workers reach the scheduler but not each other. Check firewalls and the addresses "
            "workers announce (Worker(contact_address=...), --contact-address)."
        )


class UnknownDependency(ShoalError):
    """A task names an input that the scheduler doesn't have."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return (
            f"Task {self.key} depends on a result that was released or cancelled before the task "
            "arrived, so it can't run.\nKeep a reference to the future until its dependents are "
            "submitted."
        )


class FutureCancelledError(CancelledError):
    """The result of a future will not come."""

    def __init__(self, key: object, reason: str, msg: str | None = None) -> None:
        super().__init__(key, reason, msg)
        self.key, self.reason, self.msg = key, reason, msg

    def __str__(self) -> str:
        why = reason_in_words(self.reason)
        return f"{self.key} cancelled, reason: {why}." + (f" {self.msg}" if self.msg else "")


def reason_in_words(reason: str) -> str:
    """Why a future was cancelled, to a person."""
    return {
        "": "it was cancelled",
        "unknown": "it was cancelled, or its key is not known to the scheduler",
        "scheduler-connection-lost": "the connection to the scheduler was lost",
    }.get(reason, reason)


class CancelledFuturesGroup(NamedTuple):
    """Futures that were cancelled for one reason."""

    errors: list[FutureCancelledError]
    reason: str


class FuturesCancelledError(CancelledError):
    """Of several futures that are waited for, some were cancelled."""

    def __init__(self, error_groups: list[CancelledFuturesGroup]) -> None:
        """`error_groups`: by reason; see `of`, which makes them."""
        super().__init__(error_groups)
        self.error_groups = error_groups

    @classmethod
    def of(cls, errors: Iterable[FutureCancelledError]) -> "FuturesCancelledError":
        """One for all of these."""
        by_reason: dict[str, list[FutureCancelledError]] = {}
        for error in errors:
            by_reason.setdefault(error.reason, []).append(error)
        groups = [CancelledFuturesGroup(found, reason) for reason, found in by_reason.items()]
        return cls(groups)

    def __str__(self) -> str:
        nfutures = sum(len(group.errors) for group in self.error_groups)
        lines = [f"{nfutures} future{'s were' if nfutures > 1 else ' was'} cancelled:"]
        for group in self.error_groups:
            keys = [str(error.key) for error in group.errors[:_KEYS_SHOWN]]
            more = len(group.errors) - len(keys)
            named = ", ".join(keys) + (f" and {more} more" if more else "")
            lines.append(f"  reason: {reason_in_words(group.reason)}: {named}")
        return "\n".join(lines)


class UnsupportedOption(ShoalError, ValueError):
    """An option that this version does not have."""

    def __init__(self, option: str, remedy: str) -> None:
        super().__init__(option, remedy)
        self.option, self.remedy = option, remedy

    def __str__(self) -> str:
        return f"{self.option} is not supported by this version of shoal. {self.remedy}"


class NotATask(ShoalError, ValueError):
    """Something is to be done again that nothing is known about."""

    def __init__(self, key: str, is_error: bool = False) -> None:
        """`is_error`: it should have been a task that failed."""
        super().__init__(key, is_error)
        self.key, self.is_error = key, is_error

    def __str__(self) -> str:
        which = "No errored futures passed: no failed task" if self.is_error else "No task"
        return (
            f"{which} is known by the key {self.key!r}. A scattered value has none, and what "
            "nobody holds a future of is forgotten: keep the future."
        )


class NameTaken(ShoalError):
    """Two workers can't have one name."""

    def __init__(self, name: str, address: str) -> None:
        """`address`: of the worker that has the name."""
        super().__init__(name, address)
        self.name, self.address = name, address

    def __str__(self) -> str:
        return (
            f"The worker at {self.address} is connected under the name {self.name!r} already. "
            "Give each worker a name of its own, or none: Worker(name=...), --name."
        )


class InconsistentLeases(ShoalError, ValueError):
    """One name, and two opinions on how many may hold it at once."""

    def __init__(self, name: str, leases_max: int, wanted: int) -> None:
        """`leases_max`: as it is known; `wanted`: as it was asked for."""
        super().__init__(name, leases_max, wanted)
        self.name, self.leases_max, self.wanted = name, leases_max, wanted

    def __str__(self) -> str:
        return (
            f"Inconsistent max leases: {self.name!r} is known, and {self.leases_max} may hold it "
            f"at once; here it was asked for with {self.wanted}.\n"
            "Give both the same number, or one of them another name."
        )


class LockNotKnown(ShoalError, RuntimeError):
    """A semaphore was closed, and is used after all."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"Semaphore or Lock {self.name!r} not known: it was closed.\n"
            "Close it when nobody needs it any more, or make a new object of that name."
        )


class FutureUnknown(ShoalError, TimeoutError):
    """A future was given to a queue or a variable, and what it stands for is not there."""

    def __init__(self, key: object, where: str) -> None:
        """`where`: e.g. "queue 'x'"."""
        super().__init__()  # an OSError would take two arguments for errno and strerror
        self.key, self.where = key, where

    def __reduce__(self) -> tuple[type["FutureUnknown"], tuple[object, str]]:
        return type(self), (self.key, self.where)

    def __str__(self) -> str:
        return (
            f"The future of {self.key!r} is unknown to scheduler, so the {self.where} can't keep "
            "its result: it was cancelled, or let go of by whoever made it.\n"
            "Hold the future until it was put."
        )


class WorkersNotBack(ShoalError, TimeoutError):
    """A cluster was restarted, and not all of its workers have come back in time."""

    def __init__(self, nworkers: int, nlate: int, nremoved: int, timeout_seconds: float) -> None:
        """`nlate` of them have a nanny, and `nremoved` have none."""
        super().__init__(nworkers, nlate, nremoved, timeout_seconds)
        self.nworkers, self.nlate, self.nremoved = nworkers, nlate, nremoved
        self.timeout_seconds = timeout_seconds

    def __reduce__(self) -> tuple[object, ...]:  # an OSError keeps three arguments at most
        return type(self), (self.nworkers, self.nlate, self.nremoved, self.timeout_seconds)

    def __str__(self) -> str:
        nmissing = self.nlate + self.nremoved
        said = (
            f"Waited for {self.nworkers} worker(s) to reconnect after restarting but, after "
            f"{self.timeout_seconds:g}s, {nmissing} have not returned.\n"
            "Allow a longer `timeout=`, or don't wait: `wait_for_workers=False`."
        )
        if not self.nremoved:
            return said
        return (
            f"{said}\n{self.nremoved} of them had no nanny, so nobody here starts others in their "
            "place. If whatever has started them does not do so by itself, make a new cluster "
            "instead, or start its workers with nannies (processes=True)."
        )


class WorkersNotRestarted(ShoalError, TimeoutError):
    """Some workers were to be restarted, and have not come back in time."""

    def __init__(self, late: Sequence[object], nworkers: int, timeout_seconds: float) -> None:
        super().__init__(list(late), nworkers, timeout_seconds)
        self.late, self.nworkers = list(late), nworkers
        self.timeout_seconds = timeout_seconds

    def __str__(self) -> str:
        who = ", ".join(map(str, self.late))
        return (
            f"Waited for {self.nworkers} worker(s) to reconnect after restarting but, after "
            f"{self.timeout_seconds:g}s, {len(self.late)} have not returned: {who}.\n"
            "They may still come. Allow a longer `timeout=`, and see their nannies' logs."
        )


class WithoutNanny(ShoalError, ValueError):
    """Workers are to be restarted that nobody would start again."""

    def __init__(self, workers: Sequence[object]) -> None:
        super().__init__(list(workers))
        self.workers = list(workers)

    def __str__(self) -> str:
        who = ", ".join(map(str, self.workers))
        return (
            "Restarting workers requires a nanny, and these have none: nobody would start others "
            f"in their place: {who}.\n"
            "Start workers with nannies (LocalCluster(processes=True), or `shoal worker` without "
            "--no-nanny), or let these go with client.retire_workers."
        )


class NoCopies(ShoalError, ValueError):
    """A result is to have no copy at all, or a number of copies that is none."""

    def __init__(self, ncopies: object) -> None:
        super().__init__(ncopies)
        self.ncopies = ncopies

    def __str__(self) -> str:
        return (
            f"Can not use replicate to delete data: n is a number from 1 on, not {self.ncopies!r}."
            "\nTo let go of a result, release its futures, or cancel them."
        )


class MetadataWithoutKey(ShoalError, ValueError):
    """A value was to be left with the scheduler under no key."""

    def __str__(self) -> str:
        return (
            "set_metadata got an empty list of keys, so there is no place for the value. "
            "Give a key, or a list of one or more: set_metadata('name', value)."
        )


class ActorLost(ShoalError, ConnectionError, RuntimeError):
    """An actor is gone with its worker, or was released; what it knew is nowhere else."""

    def __init__(self, key: str, worker: str, why: str) -> None:
        """`worker`: where it was; `why`: what happened, as a clause."""
        super().__init__(key, worker, why)
        self.key, self.worker, self.why = key, worker, why

    def __str__(self) -> str:
        return (
            f"Worker holding Actor was lost. Unable to contact Actor's worker {self.worker}: "
            f"{self.why.rstrip('.')}.\n"
            f"What the actor {self.key!r} knew was nowhere else, so it is not made again by "
            "itself. Submit a new one, and keep elsewhere what must outlive a worker."
        )


class ActorReleased(ActorLost):
    """An actor is needed once more after it was let go of."""

    def __str__(self) -> str:
        return (
            f"The actor {self.key!r} was released when nobody referred to it any more; what it "
            "knew is gone, so that a result that was made with it can't be made again.\nKeep a "
            "future of the actor for as long as results depend on it."
        )


class NoSuchActor(ShoalError, RuntimeError, LookupError):
    """A worker was asked for an actor that it does not have."""

    def __init__(self, key: str, worker: str) -> None:
        super().__init__(key, worker)
        self.key, self.worker = key, worker

    def __str__(self) -> str:
        return (
            f"There is no actor {self.key!r} on {self.worker}: it was released, or the worker was "
            "started anew.\nAn actor lives as long as a future of it, or what its result() gave "
            "to a client, is referred to."
        )


class NoWorkerError(ShoalError):
    """A task that any worker may run has waited too long for one to be there."""

    def __init__(self, task: str, timeout: float) -> None:
        """`timeout`: seconds that it has waited."""
        super().__init__(task, timeout)
        self.task, self.timeout = task, timeout

    def __str__(self) -> str:
        return (
            f"No worker was connected for {self.timeout:g} s, so that task {self.task!r} could not "
            "run.\n"
            "Start one, or let tasks wait longer: "
            "dask.config.set({'distributed.scheduler.no-workers-timeout': '10 minutes'})."
        )


class NoValidWorkerError(ShoalError):
    """A task has waited too long for a worker that may run it."""

    def __init__(
        self,
        task: str,
        host_restrictions: Iterable[str],
        worker_restrictions: Iterable[str],
        resource_restrictions: Mapping[str, float],
        timeout: float,
    ) -> None:
        """`timeout`: seconds that it has waited; the others: what it asks of its worker."""
        hosts, workers = sorted(host_restrictions), sorted(worker_restrictions)
        super().__init__(task, hosts, workers, dict(resource_restrictions), timeout)
        self.task, self.timeout = task, timeout
        self.host_restrictions, self.worker_restrictions = hosts, workers
        self.resource_restrictions = dict(resource_restrictions)

    def __str__(self) -> str:
        amounts = [f"{name}={n:g}" for name, n in self.resource_restrictions.items()]
        wishes = {
            "one of the workers": self.worker_restrictions,
            "one of the hosts": self.host_restrictions,
            "resources": amounts,
        }
        asked = " and ".join(
            f"{what} {', '.join(those)}" for what, those in wishes.items() if those
        )
        return (
            f"Task {self.task!r} was ready for {self.timeout:g} s, and no connected worker may run "
            f"it: it asks for {asked or 'any worker'}.\nStart such a worker, ask for less, or let "
            "tasks wait longer: "
            "dask.config.set({'distributed.scheduler.no-workers-timeout': '10 minutes'})."
        )


class UnknownClass(ShoalError, ImportError):
    """A class was named that can't be imported."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.class_name, self.why = name, why

    def __str__(self) -> str:
        return (
            f"There is no class {self.class_name!r} to import: {self.why}. Write module.Class, of "
            "a module that can be imported here; PYTHONPATH says where modules are."
        )


class UnknownInterface(ShoalError, ValueError):
    """A network interface was named that this host does not have."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name, list(known))
        self.name, self.known = name, list(known)

    def __str__(self) -> str:
        return (
            f"This host has no network interface {self.name!r} with an IPv4 address. It has: "
            f"{', '.join(self.known)}"
        )
