"""A scheduler's machine with everybody around it played by the test.

Each event is one step; then every invariant of the machine is asked, and what was said is noted as
a line that begins with who was told.  `take` returns all lines since the last `take`, so a scene
also proves that nothing else was said.  Welcomes are checked on arrival, and codes are said only to
scenes that listen for them (`shows_codes`), but no run may ever come before its code.
"""

from collections.abc import Sequence
from typing import Any

from shoal.ids import ClientTaskId, CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol import transfers
from shoal.protocol.journal import Entry, from_body, to_body
from shoal.protocol.messages import (
    CancelTasks,
    ClientWelcome,
    DefineClientCode,
    DefineCode,
    Failure,
    ForgetClientCode,
    ForgetCode,
    InputsUnavailable,
    InventoryItem,
    Message,
    RegisterClient,
    RegisterWorker,
    ReleaseTasks,
    ReplicasAdded,
    ReplicasGone,
    RunningItem,
    RunReturned,
    RunTask,
    SubmitTasks,
    TaskFailed,
    TaskFinished,
    TaskOptions,
    WantKey,
    WorkerHeartbeat,
    WorkerLeaving,
    WorkerWelcome,
)
from shoal.protocol.orphans import ReplicasAdopted
from shoal.scheduler.machine.invariants import check
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import Client, Task, Worker
from shoal.scheduler.model.journaled import Journaled
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.sim.journals import contradictions
from tests.scenes.scheduler.lines import Names

EPOCH = Epoch(7)
WAKES_MAX = 10_000


class Actor:
    """A client as the scene plays it: its numbers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.next_number = 1
        self.next_code = 1
        self.numbers: dict[str, list[ClientTaskId]] = {}  # by key, oldest first
        self.keys: dict[ClientTaskId, str] = {}
        self.codes: dict[str, CodeId] = {}
        self.graph: ClientTaskId | None = None  # that is still arriving

    def new_numbers(self, keys: Sequence[str]) -> ClientTaskId:
        """The first of the numbers under which these keys are wanted from now on."""
        first = ClientTaskId(self.next_number)
        for key in keys:
            number = ClientTaskId(self.next_number)
            self.next_number += 1
            self.numbers.setdefault(key, []).append(number)
            self.keys[number] = key
        return first

    def number(self, key: str, nth: int = 0) -> ClientTaskId:
        """Its `nth` number for `key`, counted from 1; 0 is the latest."""
        return self.numbers[key][nth - 1]


class Scene:
    """The stage: events as methods, and all that the scheduler says as lines."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("stranded_warning_seconds", None)  # most scenes look at other things
        self.settings = settings
        self.machine = SchedulerMachine(SchedulerSettings(**settings), EPOCH)
        self.now = 1000.0
        self.names = Names()
        self.lines: list[str] = []
        self.warnings: list[str] = []  # that were to be logged
        self.shows_codes = False
        self.worker_by_name: dict[str, Worker] = {}
        self.actors: dict[str, Actor] = {}
        self.told: dict[tuple[Worker, CodeId], None] = {}
        self.runs: list[tuple[Worker, TaskId, RunId]] = []  # every run that was sent, in order
        self.seen: dict[tuple[str, str], None] = {}  # transitions of all steps so far
        self._seen_until = 0  # the step
        self._next_request = 1
        self.disk: list[bytes] = []  # bodies of the journal's records, as far as they are synced
        self.unsynced: list[Entry] = []
        self.syncs_at_once = False
        self._held: list[tuple[Client, Message]] = []
        self._journaled = Journaled()  # all of it

    # --- what is asked of a scene ---

    def take(self) -> list[str]:
        """All that was said since the last time."""
        lines, self.lines = self.lines, []
        return lines

    def state(self, key: str) -> str:
        """The state of a task, `forgotten` if it is not known."""
        task = self.machine.state.tasks.get(Key(key))
        return "forgotten" if task is None else task.state

    def task(self, key: str) -> Task:
        """A task that is known."""
        return self.machine.state.tasks[Key(key)]

    def worker(self, name: str) -> Worker:
        """A worker, connected or not."""
        return self.worker_by_name[name]

    # --- workers come and go ---

    def workers(self, *names: str, nthreads: int = 1) -> None:
        """These connect, one after the other."""
        for name in names:
            self.join(name, nthreads=nthreads)

    def join(self, name: str, nthreads: int = 1, **fields: Any) -> Worker:
        """One connects; `holds`: keys of its inventory, of this epoch unless `epoch` says else.

        `runs`: keys of what it executes since before, in the same way.
        """
        holds: dict[str, TaskId] = fields.pop("holds", {})
        runs: dict[str, TaskId] = fields.pop("runs", {})
        message = RegisterWorker(
            address=fields.pop("address", f"tcp://{name}:1"),
            name=name,
            nthreads=nthreads,
            memory_limit=fields.pop("memory_limit", 0),
            epoch=fields.pop("epoch", EPOCH if holds or runs else Epoch(0)),
            inventory=[InventoryItem(number, Key(key), 10) for key, number in holds.items()],
            executing=[RunningItem(number, Key(key)) for key, number in runs.items()],
            keeps_orphans=fields.pop("keeps_orphans", True),
            **fields,
        )
        worker = self.machine.worker_joined(message, self.now)
        self.worker_by_name[name] = worker
        self._hear()
        return worker

    def lose(self, name: str, reason: str = "", *, expected: bool = False) -> None:
        """Its connection breaks."""
        self.machine.worker_lost(self.worker(name), self.now, reason, expected)
        self._hear()

    def leave(self, name: str) -> None:
        """It is about to close by itself."""
        self.from_worker(name, WorkerLeaving())

    def heartbeat(self, name: str) -> None:
        """It lives."""
        self.from_worker(name, WorkerHeartbeat(memory_bytes=1))

    # --- what workers say ---

    def finish(
        self,
        *keys: str,
        on: str = "",
        nth: int = 0,
        nbytes: int = 10,
        value: bytes | None = None,
        seconds: float = 1.0,
    ) -> None:
        """Runs end well, in one frame: the latest of each key, or the `nth`, or the latest `on`."""
        found = [self.run(key, on, nth) for key in keys]
        frame = [
            TaskFinished(task, run, nbytes, seconds, value, "" if value else "builtins.list")
            for _, task, run in found
        ]
        self._from_worker(found[0][0], *frame)

    def fail(
        self,
        key: str,
        text: str = "ValueError: no",
        *,
        on: str = "",
        nth: int = 0,
        immovable: Sequence[str] = (),
    ) -> None:
        """A run raises, or inputs can't be sent to it."""
        worker, task, run = self.run(key, on, nth)
        numbers = [self.number(name) for name in immovable]
        failure = Failure(b"", text, "", Key(key))
        self._from_worker(worker, TaskFailed(task, run, failure, 0.0, numbers))

    def returned(self, key: str, *, on: str = "", nth: int = 0) -> None:
        """A recalled run had not begun."""
        worker, task, run = self.run(key, on, nth)
        self._from_worker(worker, RunReturned(task, run))

    def unavailable(
        self,
        key: str,
        *missing: str,
        unreachable: Sequence[str] = (),
        lacking: Sequence[str] = (),
        on: str = "",
        nth: int = 0,
    ) -> None:
        """A run can't get these inputs; the holders lack them, or can't be reached."""
        worker, task, run = self.run(key, on, nth)
        numbers = [self.task(name).id for name in missing]
        peers = [f"tcp://{name}:1" for name in unreachable]
        lack = [f"tcp://{name}:1" for name in lacking]
        self._from_worker(worker, InputsUnavailable(task, run, numbers, peers, lack))

    def holds(self, name: str, *keys: str, nbytes: int = 10) -> None:
        """A worker has fetched copies, or got them from a client."""
        numbers = [self.number(key) for key in keys]
        self.from_worker(name, ReplicasAdded(numbers, [nbytes] * len(keys)))

    def come_back(self, name: str, *keys: str, runs: Sequence[str] = (), **fields: Any) -> Worker:
        """A worker of a scheduler that was lost connects, with results of these keys."""
        numbers = {key: TaskId(100 + i) for i, key in enumerate([*keys, *runs])}
        return self.join(
            name,
            holds={key: numbers[key] for key in keys},
            runs={key: numbers[key] for key in runs},
            epoch=Epoch(6),
            **fields,
        )

    def adopted(
        self, name: str, *keys: str, value: bytes | None = None, actors: Sequence[str] = ()
    ) -> None:
        """A worker knows results by the numbers that they were given."""
        n = len(keys)
        numbers = [self.number(key) for key in keys]
        names = [Key(key) for key in keys]
        columns = names, numbers, [10] * n, [value] * n, [""] * n
        self.from_worker(name, ReplicasAdopted(*columns, actors=[Key(key) for key in actors]))

    def adopted_as(self, name: str, key: str, number: TaskId) -> None:
        """The same, by a number that may be another task's by now."""
        self.from_worker(name, ReplicasAdopted([Key(key)], [number], [10], [None], [""]))

    def gone(self, name: str, *keys: str) -> None:
        """A worker has lost copies."""
        self.from_worker(name, ReplicasGone([self.number(key) for key in keys]))

    def number(self, key: str) -> TaskId:
        """The number of the task that has, or had last, this key."""
        return max(number for number, name in self.names.keys.items() if name == key)

    def run(self, key: str, on: str = "", nth: int = 0) -> tuple[Worker, TaskId, RunId]:
        """A run that was sent."""
        for worker, task, run in reversed(self.runs):
            if self.names.keys[task] != key or (on and worker is not self.worker(on)):
                continue
            if nth in (0, self.names.nth_run[run]):
                return worker, task, run
        raise AssertionError(f"no run of {key} was sent")

    def from_worker(self, name: str, *frame: Message) -> None:
        """Any messages in one frame."""
        self._from_worker(self.worker(name), *frame)

    def _from_worker(self, worker: Worker, *frame: Message) -> None:
        self.machine.receive_from_worker(worker, frame, self.now)
        self._hear()

    # --- clients ---

    def actor(self, client: str) -> Actor:
        """A client; it connects when it is first named."""
        if client not in self.actors:
            joined = self.machine.client_joined(RegisterClient(client), self.now)
            self.actors[client] = Actor(joined)
            self._hear()
        return self.actors[client]

    def submit(
        self,
        client: str = "c",
        *,
        code: str = "f",
        prefix: str = "",
        options: TaskOptions | None = None,
        wanted: Sequence[str] | None = None,
        held: Sequence[str] = (),
        let_go: Sequence[str] = (),
        ahead: int | None = None,
        **tasks: list[str],
    ) -> None:
        """Tasks and what each depends on; `options` by name: priority, retries, workers, ...

        `ahead` makes it a slice of a graph, with so many tasks to come.
        """
        actor = self.actor(client)
        self.define(code, client)
        keys = list(tasks)
        released = [actor.number(name) for name in let_go]
        first = actor.new_numbers(keys)
        if ahead is not None and actor.graph is None:
            actor.graph = first
        names = [prefix or key.rstrip("0123456789") for key in keys]
        prefixes = list(dict.fromkeys(names))
        message = SubmitTasks(
            first=first,
            keys=[Key(key) for key in keys],
            codes=[actor.codes[code]],
            arguments=[b""] * len(keys),
            dependencies=[[actor.number(name) for name in needs] for needs in tasks.values()]
            if any(tasks.values())
            else [],
            prefixes=prefixes,
            prefix_indices=[prefixes.index(name) for name in names] if len(prefixes) > 1 else [],
            options=options,
            wanted=None if wanted is None else [keys.index(name) for name in wanted],
            held=[keys.index(name) for name in held],
            let_go=released,
            graph=actor.graph if ahead is not None else None,
            ntasks_ahead=ahead or 0,
        )
        if ahead == 0:
            actor.graph = None
        self.from_client(client, message)

    def define(self, code: str, client: str = "c") -> None:
        """The client will use this code, if it does not yet."""
        actor = self.actor(client)
        if code not in actor.codes:
            number = actor.codes[code] = CodeId(actor.next_code)
            actor.next_code += 1
            self.from_client(client, DefineClientCode(number, code.encode()))

    def forget_code(self, code: str, client: str = "c") -> None:
        """The client will not use this code again."""
        self.from_client(client, ForgetClientCode([self.actor(client).codes.pop(code)]))

    def want(self, key: str, client: str = "c") -> None:
        """A future that came from elsewhere."""
        first = self.actor(client).new_numbers([key])
        self.from_client(client, WantKey(first, Key(key)))

    def release(self, *keys: str, client: str = "c", nth: int = 0) -> None:
        """Futures are gone: the latest of each key, or the `nth`."""
        actor = self.actor(client)
        self.from_client(client, ReleaseTasks([actor.number(key, nth) for key in keys]))

    def cancel(self, *keys: str, client: str = "c", force: bool = False, reason: str = "") -> None:
        """Futures are cancelled."""
        numbers = [self.actor(client).number(key) for key in keys]
        self.from_client(client, CancelTasks(numbers, force, reason))

    def scatter(self, *keys: str, client: str = "c", **fields: Any) -> None:
        """Where shall these values go?"""
        fields["first"] = self.actor(client).new_numbers(keys)
        fields["keys"] = [Key(key) for key in keys]
        self.call(transfers.PlaceScatter, client, nbytes=[8] * len(keys), **fields)

    def call(self, kind: type[Message], client: str = "c", **fields: Any) -> None:
        """Ask something."""
        request = self._next_request
        self._next_request += 1
        self.names.calls[request] = kind
        self.from_client(client, kind(request=request, **fields))

    def lose_client(self, client: str = "c") -> None:
        """Its connection breaks."""
        self.machine.client_lost(self.actor(client).client, self.now)
        self._hear()

    def from_client(self, client: str, *frame: Message) -> None:
        """Any messages in one frame."""
        self.machine.receive_from_client(self.actor(client).client, frame, self.now)
        self._hear()

    # --- time ---

    def advance(self, seconds: float) -> list[str]:
        """Time goes by, and the machine is woken when it asked to be; names of those given up."""
        until = self.now + seconds
        silent: list[str] = []
        for _ in range(WAKES_MAX):
            at = self.machine.wake_at
            if at is None or at > until:
                self.now = until
                return silent
            self.now = max(self.now, at)
            silent += [worker.name for worker in self.machine.wake(self.now)]
            self._hear()
        raise AssertionError(f"woken {WAKES_MAX} times in {seconds} s")

    # --- the journal ---

    def keep_journal(self, disk: Sequence[bytes] = ()) -> None:
        """Before anything else: what this life has of the one before, and that it writes on."""
        journaled = Journaled(entry for body in disk for entry in from_body(body))
        journaled.prune()
        self.disk = [to_body(list(journaled.entries()))]  # numbers of what is gone are free again
        self.machine.begin_journal(journaled, EPOCH, self.now)
        self._journaled = Journaled(journaled.entries())
        self._journaled.workers.clear()
        self._hear()

    def sync(self) -> None:
        """The disk has got all that was to be written; who waited for that is told."""
        if self.unsynced:
            self.disk.append(to_body(self.unsynced))
        held, self._held, self.unsynced = self._held, [], []
        for client, message in held:
            if self.machine.state.clients.get(client.id) is client:
                self._note_client(client, message)

    def stop_journal(self, why: str) -> None:
        """The disk fails."""
        self.machine.stop_journal(why, self.now)
        self._hear()

    def after_a_crash(self) -> "Scene":
        """The scheduler is killed, and another is started with what the disk has."""
        scene = Scene(**self.settings)
        scene.keep_journal(self.disk)
        return scene

    def _take_journaled(self) -> None:
        entries, held = self.machine.take_journaled()
        self.unsynced += entries
        self._held += held
        self._journaled.take(entries)
        wrong = list(contradictions(self.machine.state, self._journaled))
        assert not wrong, "\n".join(wrong)
        if self.syncs_at_once:
            self.sync()

    # --- hearing ---

    def _hear(self) -> None:
        """Note what was said in this step, and look whether all is in order."""
        for number, task in self.machine.state.task_by_id.items():
            self.names.keys[number] = task.key
        self.warnings += self.machine.take_warnings()
        for peer, said in self.machine.take_outgoing():
            assert said, f"{peer} was to be told something, but nothing was said"
            for message in said:
                if isinstance(peer, Worker):
                    self._note_worker(peer, message)
                else:
                    self._note_client(peer, message)
        broken = list(check(self.machine.state))
        assert not broken, "\n".join(broken)
        self._take_journaled()
        latest = self._seen_until
        for _, _, before, after, _, step, _ in reversed(self.machine.story.records):
            if step <= latest:
                break
            self.seen[before, after] = None
            self._seen_until = max(self._seen_until, step)

    def _note_worker(self, worker: Worker, message: Message) -> None:
        if isinstance(message, WorkerWelcome):
            assert (message.epoch, message.worker_id) == (EPOCH, worker.id)
            return
        if isinstance(message, DefineCode):
            assert (worker, message.code) not in self.told, f"{worker} is told a code twice"
            self.told[worker, message.code] = None
        elif isinstance(message, ForgetCode):
            for code in message.codes:
                del self.told[worker, code]
        elif isinstance(message, RunTask):
            assert (worker, message.code) in self.told, f"{worker} runs a code it was not told"
            self.runs.append((worker, message.task, message.run))
        for line in self.names.to_worker(message, codes=self.shows_codes):
            self.lines.append(f"{worker.name}: {line}")

    def _note_client(self, client: Client, message: Message) -> None:
        if isinstance(message, ClientWelcome):
            assert message.epoch == EPOCH
            return
        line = self.names.to_client(message, self.actors[client.name].keys.__getitem__)
        self.lines.append(f"{client.name}: {line}")
