"""A client's machine on a stage: what the user does, what the scheduler says, what is said back."""

from collections.abc import Sequence

from shoal.client.machine import ClientMachine, Record
from shoal.client.machine.invariants import check
from shoal.ids import ClientTaskId, Epoch, Key, TaskId
from shoal.protocol.detached import DetachTasks
from shoal.protocol.holding import RetryTasks, TaskRetried
from shoal.protocol.messages import (
    CancelTasks,
    ClientWelcome,
    DefineClientCode,
    Failure,
    ForgetClientCode,
    Message,
    ReleaseTasks,
    SubmitTasks,
    TaskCancelled,
    TaskErred,
    TaskInMemory,
    TaskLost,
    TaskOptions,
    WantKey,
)


class Scene:
    """One client; `take()` gives all that it said since the last time, as short lines."""

    def __init__(self, functions_max: int = 1000, *, returns: bool = False) -> None:
        self.machine = ClientMachine(functions_max)
        if returns:
            self.machine.may_return(lambda: [])
        self.machine.receive([ClientWelcome(Epoch(7))])

    # --- the user ----------------------------------------------------------------------------

    def submit(
        self,
        *keys: str,
        needs: Sequence[Record] = (),
        function: str = "f",
        options: TaskOptions | None = None,
    ) -> list[Record]:
        """Futures of calls of one function, each with the same inputs."""
        payload = function.encode()
        dependencies = [needs for _ in keys] if needs else ()
        prefix = function
        return self.machine.submit(
            (payload, payload),
            prefix,
            [Key(key) for key in keys],
            [b"" for _ in keys],
            dependencies,
            options,
        )

    def want(self, key: str) -> Record:
        return self.machine.want(Key(key))

    def release(self, *records: Record) -> None:
        self.machine.release(records)

    def cancel(self, *records: Record, reason: str = "") -> None:
        self.machine.cancel(records, reason=reason)

    # --- the scheduler -----------------------------------------------------------------------

    def finish(self, number: int, value: bytes | None = b"v", holders: Sequence[str] = ()) -> None:
        self._hear(
            TaskInMemory(
                ClientTaskId(number), TaskId(100 + number), 10, value, list(holders), "builtins.int"
            )
        )

    def err(self, number: int, origin: str = "") -> None:
        failure = Failure(b"", "ValueError: no", origin=Key(origin))
        self._hear(TaskErred(ClientTaskId(number), failure))

    def retried(self, number: int) -> None:
        self._hear(TaskRetried(ClientTaskId(number)))

    def retry(self, *records: Record) -> None:
        self.machine.retry(records)

    def lose(self, number: int) -> None:
        self._hear(TaskLost(ClientTaskId(number)))

    def drop(self, number: int, reason: str = "lost dependencies") -> None:
        self._hear(TaskCancelled(ClientTaskId(number), reason))

    def lose_scheduler(self) -> list[str]:
        """Addresses of workers that the client knows."""
        known = self.machine.scheduler_lost()
        self.look()
        return known

    def find_scheduler(self) -> None:
        """One that knows nothing has let the client in."""
        self._hear(ClientWelcome(Epoch(8)))

    def _hear(self, message: Message) -> None:
        self.machine.receive([message])
        self.look()

    # --- what follows ------------------------------------------------------------------------

    def take(self) -> list[str]:
        self.look()
        return [line(message) for message in self.machine.take_outgoing()]

    def ended(self) -> list[str]:
        """Keys whose waiters are to be told, with what became of them."""
        return [f"{record.key}: {record.status}" for record in self.machine.take_resolved()]

    def look(self) -> None:
        assert list(check(self.machine)) == []


def line(message: Message) -> str:
    """One message as a line of a transcript."""
    match message:
        case DefineClientCode(code, payload):
            return f"code {code} is {payload.decode()}"
        case ForgetClientCode(codes):
            return f"forget code {spaced(codes)}"
        case SubmitTasks():
            return submitted(message)
        case ReleaseTasks(tasks):
            return f"release {spaced(tasks)}"
        case CancelTasks(tasks, force, reason):
            why = f" ({reason})" if reason else ""
            return f"cancel {spaced(tasks)}{' by force' if force else ''}{why}"
        case RetryTasks(tasks):
            return "retry " + " ".join(map(str, tasks))
        case DetachTasks(tasks):
            return f"detach {spaced(tasks)}"
        case WantKey(task, key):
            return f"want {key} #{task}"
    return type(message).__name__


def submitted(message: SubmitTasks) -> str:
    """`submit x#1(code 1) y#2(code 1; 1)`: numbers of dependencies stand behind the code."""
    parts = []
    for i, key in enumerate(message.keys):
        code = message.codes[i if len(message.codes) > 1 else 0]
        needs = message.dependencies[i] if message.dependencies else []
        after = f"; {spaced(needs)}" if needs else ""
        parts.append(f"{key}#{message.first + i}(code {code}{after})")
    return f"submit {' '.join(parts)}"


def spaced(numbers: Sequence[int]) -> str:
    return " ".join(str(number) for number in numbers)
