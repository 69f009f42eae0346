"""Every text of an error that a user may see: what happened, why, and what to do.

The facts stay attributes, so that a program may act on them; each class survives pickling, because
most of them travel.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import CancelledError


class ShoalError(Exception):
    """The base of all errors that shoal raises of its own."""


_CAUSES_SHOWN = 3


def causes_in_words(causes: Sequence[str]) -> str:
    """Each cause once, with how often it was: `"exit code 3 (twice)"`; the last ones, if many."""
    shown = list(Counter(reversed(causes)).items())[:_CAUSES_SHOWN]
    words = []
    for cause, count in shown:
        times = {1: "", 2: " (twice)"}.get(count, f" ({count} times)")
        words.append(cause + times)
    rest = len(causes) - sum(count for _, count in shown)
    return "; ".join(words) + (f"; and {rest} more before" if rest else "")


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

    def __init__(self, key: str, worker: str) -> None:
        """`worker`: the last one that held it; "" if that isn't known, or none did."""
        super().__init__(key, worker)
        self.key, self.worker = key, worker

    def __str__(self) -> str:
        if not self.worker:
            return (
                f"The scattered value {self.key!r} is gone: its last future was released, or the "
                "client that was to send it left; it can't be computed again.\nKeep a future of "
                "it as long as something made from it may have to be computed again."
            )
        return (
            f"The scattered value {self.key!r} was lost with worker {self.worker}, its last "
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
            f"Task {self.key!r} depends on a result that was released or cancelled before the task "
            "arrived, so it can't run.\nKeep a reference to the future until its dependents are "
            "submitted."
        )


class FutureCancelledError(CancelledError):
    """The result of a future will not come."""

    def __init__(self, key: object, reason: str, msg: str | None = None) -> None:
        super().__init__(key, reason, msg)
        self.key, self.reason, self.msg = key, reason, msg

    def __str__(self) -> str:
        why = {
            "": "it was cancelled",
            "unknown": "it was cancelled, or its key is not known to the scheduler",
            "scheduler-connection-lost": "the connection to the scheduler was lost",
        }.get(self.reason, self.reason)
        return f"{self.key} cancelled: {why}." + (f" {self.msg}" if self.msg else "")


class UnsupportedOption(ShoalError, ValueError):
    """An option that this version does not have."""

    def __init__(self, option: str, remedy: str) -> None:
        super().__init__(option, remedy)
        self.option, self.remedy = option, remedy

    def __str__(self) -> str:
        return f"{self.option} is not supported by this version of shoal. {self.remedy}"


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
