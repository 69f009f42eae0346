"""All that the scheduler knows, and the small operations that keep its indexes true."""

from collections import deque

from shoal.ids import ClientId, ClientTaskId, CodeId, Epoch, Key, TaskId, WorkerId
from shoal.protocol.messages import TaskOptions
from shoal.scheduler.model.copies import Copies
from shoal.scheduler.model.datasets import Dataset
from shoal.scheduler.model.demands import Demand, DemandKey, Line, LineKey, Told
from shoal.scheduler.model.entities import (
    FORGOTTEN,
    RELEASED,
    STATES,
    Client,
    Code,
    Prefix,
    Task,
    Worker,
    aliases_of,
)
from shoal.scheduler.model.exchanges import Channel, Event, Queue, Variable
from shoal.scheduler.model.failing import Failing
from shoal.scheduler.model.footprints import Footprints
from shoal.scheduler.model.journal import Journal
from shoal.scheduler.model.keepers import Keeper
from shoal.scheduler.model.lateness import Lateness
from shoal.scheduler.model.limits import Limits
from shoal.scheduler.model.loads import LoadIndex
from shoal.scheduler.model.locks import Joints, Lock
from shoal.scheduler.model.metadata import Collection
from shoal.scheduler.model.metadata import Node as MetadataNode
from shoal.scheduler.model.orphans import Heirlooms, Orphans, Recovery
from shoal.scheduler.model.queue import TaskQueue
from shoal.scheduler.model.reduction import Reduction
from shoal.scheduler.model.reruns import Rerun
from shoal.scheduler.model.restarts import Restart
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.model.shares import Shares
from shoal.scheduler.model.shuffles import Shuffle
from shoal.scheduler.model.topics import Forwarding, Topic
from shoal.scheduler.model.ways import Ways


class SchedulerState:
    """Entities and the indexes over them; changed by the machine only."""

    def __init__(self, settings: SchedulerSettings, epoch: Epoch) -> None:
        self.settings = settings
        self.epoch = epoch
        self._know_nobody()
        self._know_no_tasks()
        self._keep_nothing()
        self._agree_on_nothing()
        self._keep_for_nobody()

    def _know_nobody(self) -> None:
        """Who is there, and how much they have to do."""
        self.workers: dict[str, Worker] = {}  # by address
        self.worker_by_id: dict[WorkerId, Worker] = {}
        self.workers_by_alias: dict[str, dict[Worker, None]] = {}  # by address, name and host
        self.clients: dict[ClientId, Client] = {}
        self.watching: dict[Client, None] = {}  # who is told of workers that come and go
        self.serving: dict[Client, None] = {}  # clients of the tasks of a worker
        self.loads = LoadIndex()  # every worker, by expected work per thread
        self.open = LoadIndex()  # workers with room, by work that was sent to them
        self.backlogged = LoadIndex()  # workers with a backlog, by expected work per thread
        self.nthreads = 0  # of all workers
        self.ways = Ways(self.settings.bandwidth_bytes_per_second)  # between them
        self.piped: dict[Worker, None] = {}
        """Workers with runs that can't have begun, and were not considered for a recall."""

        self.deaths: dict[tuple[str, int], str] = {}  # how workers died, as successors told
        self.restarts: list[Restart] = []  # of workers, that somebody waits for
        self.first_came_at: float | None = None  # somebody registered (s)
        self.lateness = Lateness()  # of the scheduler itself
        self.idle_since: dict[Worker, float] = {}  # though something is ready, as it seems (s)
        self.warned: dict[str, float] = {}  # what its log was told of -> when (s), the oldest first
        self.next_worker_id = 1
        self.next_client_id = 1

    def _know_no_tasks(self) -> None:
        """What there is to do, and how it stands."""
        self.tasks: dict[Key, Task] = {}
        self.task_by_id: dict[TaskId, Task] = {}
        self.prefixes: dict[str, Prefix] = {}
        self.resting: dict[Prefix, None] = {}  # prefixes without tasks, for the longest first
        self.codes: dict[CodeId, Code] = {}
        self.queue = TaskQueue()
        self.demands: dict[DemandKey, Demand] = {}  # queued tasks that need resources, or have
        self.lines: dict[LineKey, Line] = {}  # those of them that not every worker can meet
        self.limits = Limits(self.settings.limits, self.demands)  # names of which so many may run
        self.died_under: dict[Task, list[tuple[str, int]]] = {}
        """Task -> the workers, by host and process id, that died as they may have run it."""
        self.reruns: dict[Task, Rerun] = {}  # run again, or about to be -> what became of the last
        self.recalled: dict[Task, Worker] = {}  # sent, to be given back -> who is to run it instead
        self.failing: dict[Worker, Failing] = {}  # on which the last runs have raised
        self.avoided: dict[Task, dict[Worker, None]] = {}  # who not to run them, if others can
        self.witnesses: dict[Task, dict[Worker, None]] = {}  # results -> who could not get them
        self.explanations: dict[Task, dict[tuple[Client, int], float]] = {}
        """Actor -> calls of clients that ask what became of it -> when to answer, soonest first."""
        self.unrunnable: dict[Task, float] = {}  # whose state is no-worker -> since when (s)
        self.stranded: deque[tuple[float, Task]] = deque()  # by time; some of them wait no more
        self.untold: deque[tuple[float, Task]] = deque()
        """By time, those of them that no client was told of yet; some of them wait no more."""
        self.told_unmet: dict[Client, dict[DemandKey, Told]] = {}  # what tasks that wait need
        self.nested_since: dict[DemandKey, float] = {}
        """Demands of tasks within tasks that were not looked at yet -> since when (s), by time."""
        self.workerless_since: float | None = None  # tasks are queued, and nobody is there
        self.all_paused_since: float | None = None  # all workers that are there
        self.told_paused: dict[Client, float] = {}  # when they were told of that (s)
        self.incomplete: dict[Task, None] = {}  # failed, as not all that they need was known
        self.of_no_use: dict[Task, None] = {}  # to be forgotten in steps to come
        self.orphans = Orphans()  # what workers have of another life of the scheduler
        self.recovery: Recovery | None = None  # as those who have it may be about to come
        self.has_recovered = False  # and have come, or will not
        self.heirlooms = Heirlooms()  # what a journal has told of the life before
        self.footprints = Footprints()  # what waits for memory, and the limits of workers
        self.unplaced: deque[Task] = deque()  # ready, to be placed in steps to come
        self.has_unsent = False  # queued tasks with room for them were left to the next step
        self.scattering: dict[Task, dict[Client, dict[Worker, None]]] = {}
        """Awaited scattered value -> who brings it -> which workers shall get it from there."""
        self.withheld: dict[Task, Worker] = {}  # scattered values -> the suspect that alone has it
        self.copies = Copies()  # being made, and why
        self.reduction = Reduction(  # of copies that nobody needs
            is_on=self.settings.reduces_replicas,
            interval_seconds=self.settings.reduction_seconds,
        )
        self.ntasks = dict.fromkeys(STATES, 0)  # by state
        self.nfinished = 0  # runs, those of prefixes that are forgotten too
        self.received_bytes = 0  # of results that workers got from elsewhere, those gone too
        self.next_task_id = 1
        self.next_run = 1
        self.next_code_id = 1
        self.next_sequence = 1  # place in the order of submission behind all that were given
        self.shares = Shares()  # who submits, and how far each has got
        self.barriers: dict[Task, Shuffle] = {}  # of shuffles that were defined
        self.shuffles: dict[str, Shuffle] = {}  # the same by id
        self.next_shuffle_epoch = 1
        self.scatter_cursor = 0  # how many threads' worth of values were scattered

    def _keep_nothing(self) -> None:
        """What is told, and kept for clients to look at."""
        self.topics: dict[str, Topic] = {}  # what was told, the latest topic last
        self.departed: dict[str, float] = {}  # topics of peers that left -> when (s)
        self.forwarding: dict[Forwarding, int] = {}  # who wants logs -> their level
        self.datasets: dict[Key, Dataset] = {}  # published values
        self.next_loan = 1  # number of the next want on behalf of who gets a dataset, below zero
        self.metadata: MetadataNode = {}
        self.collections: dict[tuple[Client, str], Collection] = {}  # who asks how tasks end

    def _agree_on_nothing(self) -> None:
        """What clients agree on by name: a row for each file of machine/coordination."""
        self.locks: dict[str, Lock] = {}  # those that are held or registered
        self.joints = Joints()
        self.events: dict[str, Event] = {}  # those that are set or waited for
        self.queues: dict[str, Queue] = {}
        self.variables: dict[str, Variable] = {}  # those that are set or waited for
        self.channels: dict[str, Channel] = {}  # those that have subscribers
        self.adapting: dict[Client, str] = {}  # clusters that adapt -> what they do just now

    def _keep_for_nobody(self) -> None:
        """What is wanted in the name of what is no client."""
        self.keepers: dict[str, Keeper] = {}  # wants in the name of what is no client
        self.let_go_at: dict[str, float] = {}  # keeper -> when it ends, sooner ones first
        self.letting_go: dict[Keeper, None] = {}  # in steps to come, of all that they keep
        self.journal: Journal | None = None  # what is written for the next life, if anything is
        self.journal_trouble = ""  # why nothing is written any more, though it should be

    def prefix(self, name: str) -> Prefix:
        """The prefix called `name`, made if it is new."""
        prefix = self.prefixes.get(name)
        if prefix is None:
            prefix = self.prefixes[name] = Prefix(name)
            seconds = self.settings.known_seconds.get(name)
            if seconds is not None:
                prefix.duration_us = round(seconds * 1e6)
            known_bytes = self.settings.known_bytes.get(name)
            if known_bytes is not None:
                prefix.peak_bytes, prefix.ngauged = known_bytes, 1
                prefix.weighs = known_bytes >= self.footprints.weighty_bytes
                prefix.notable_bytes = -1 if prefix.weighs else 0
        return prefix

    def new_code(self, payload: bytes) -> Code:
        """A code that nobody uses yet."""
        code = Code(CodeId(self.next_code_id), payload)
        self.next_code_id += 1
        self.codes[code.id] = code
        return code

    def new_task(
        self,
        key: Key,
        code: Code | None,
        argument: bytes | int,
        prefix_name: str,
        priority: int,
        options: TaskOptions,
    ) -> Task:
        """A task under a key that is new, in every index, and released; not linked to anything."""
        id = TaskId(self.next_task_id)
        self.next_task_id += 1
        prefix = self.prefix(prefix_name)
        if not prefix.nlive:
            prefix.nfinished_before = prefix.nfinished
            self.resting.pop(prefix, None)
        prefix.nlive += 1
        task = Task(key, id, code, argument, prefix, priority, options)
        self.tasks[key] = task
        self.task_by_id[id] = task
        self.ntasks[RELEASED] += 1
        prefix.ntasks[RELEASED] += 1
        return task

    def remove_task(self, task: Task) -> None:
        """Take a forgotten task out of every index; it is not linked to anything any more.

        What was learnt about its prefix stays for a while: until so many others rest.
        """
        prefix = task.prefix
        del self.tasks[task.key]
        del self.task_by_id[task.id]
        self.ntasks[FORGOTTEN] -= 1
        prefix.ntasks[FORGOTTEN] -= 1
        prefix.nlive -= 1
        if not prefix.nlive:
            self.resting[prefix] = None
            if len(self.resting) > self.settings.resting_prefixes_max:
                oldest = next(iter(self.resting))
                del self.resting[oldest]
                del self.prefixes[oldest.name]

    def add_worker(self, worker: Worker) -> None:
        """Enter a worker into every index."""
        self.workers[worker.address] = worker
        self.worker_by_id[worker.id] = worker
        self.nthreads += worker.nthreads
        self.ways.nworkers += 1
        for alias in aliases_of(worker):
            self.workers_by_alias.setdefault(alias, {})[worker] = None

    def remove_worker(self, worker: Worker) -> None:
        """Take a worker out of every index; what it held and ran must be settled already."""
        del self.workers[worker.address]
        del self.worker_by_id[worker.id]
        self.nthreads -= worker.nthreads
        self.ways.nworkers -= 1
        for alias in dict.fromkeys(aliases_of(worker)):
            named = self.workers_by_alias[alias]
            del named[worker]
            if not named:
                del self.workers_by_alias[alias]
        for index in (self.loads, self.open, self.backlogged):
            index.discard(worker)
        self.piped.pop(worker, None)

    def workers_named(self, names: list[str]) -> dict[Worker, None]:
        """Workers that any of `names` means: addresses, names or hosts."""
        found: dict[Worker, None] = {}
        for name in names:
            found.update(self.workers_by_alias.get(name, {}))
        return found


def link_dependencies(task: Task, dependencies: tuple[Task, ...]) -> None:
    """Make `task` depend on `dependencies`, at both ends."""
    task.dependencies = dependencies
    for dependency in dependencies:
        if dependency.dependents is None:
            dependency.dependents = {task: None}
        else:
            dependency.dependents[task] = None


def unlink_dependencies(task: Task) -> list[Task]:
    """Undo `link_dependencies`; returns those on which nothing depends any more."""
    unused: list[Task] = []
    for dependency in task.dependencies:
        dependents = dependency.dependents
        assert dependents is not None
        del dependents[task]
        if not dependents:
            dependency.dependents = None
            unused.append(dependency)
    task.dependencies = ()
    return unused


def link_replica(task: Task, worker: Worker) -> None:
    """`worker` holds a copy of the task's result, whose size is known."""
    if task not in worker.has_what:
        if task.who_has is None:
            task.who_has = [worker]
        else:
            task.who_has.append(worker)
        worker.has_what[task] = None
        worker.nbytes += task.nbytes


def unlink_replica(task: Task, worker: Worker) -> None:
    """`worker` no longer holds a copy of the task's result."""
    if task in worker.has_what:
        assert task.who_has is not None
        task.who_has.remove(worker)
        del worker.has_what[task]
        if worker.actors:
            worker.actors.pop(task, None)
        worker.nbytes -= task.nbytes
        if not task.who_has:
            task.who_has = None


def link_hold(task: Task, client: Client, number: ClientTaskId) -> None:
    """Later slices of a graph of `client` will refer to the task by `number`."""
    task.nholds += 1
    client.held[number] = task


def unlink_hold(task: Task, client: Client, number: ClientTaskId) -> None:
    """No slice refers to what `client` called `number` any more."""
    task.nholds -= 1
    del client.held[number]


def link_want(task: Task, client: Client, number: ClientTaskId) -> None:
    """`client` wants the task's result, and calls it `number`."""
    task.wants = (*task.wants, (client, number))
    client.tasks[number] = task


def unlink_want(task: Task, client: Client, number: ClientTaskId) -> None:
    """`client` no longer wants what it called `number`.  Cost: O(wants of the task)."""
    del client.tasks[number]
    if len(task.wants) == 1:
        task.wants = ()
    else:
        task.wants = tuple(want for want in task.wants if want != (client, number))
