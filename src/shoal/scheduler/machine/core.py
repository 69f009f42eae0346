"""What one step of the scheduler's machine works with: the state, what is due, what to say.

Handlers change the state and note what became due: tasks to start, tasks that may be released,
tasks that are ready, workers with room.  The end of the step carries all of it out together, so
that a burst of a thousand events costs one decision.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import NamedTuple

from shoal.ids import Epoch, RunId, TaskId
from shoal.protocol.messages import FreeReplicas, Message, Shutdown
from shoal.scheduler.machine.story import Record, Story
from shoal.scheduler.machine.transitions import DECLARED
from shoal.scheduler.model.about import About
from shoal.scheduler.model.demands import DemandKey
from shoal.scheduler.model.entities import Client, Task, Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.model.state import SchedulerState
from shoal.scheduler.policies.memory import Admission
from shoal.scheduler.policies.placement import EarliestStart
from shoal.scheduler.policies.queuing import LateBinding
from shoal.scheduler.policies.stealing import TakeFromBacklog


class Announced(NamedTuple):
    """Whom to tell of peers that come and go; made of the parts' tables, see `table.py`."""

    worker_joined: "tuple[Callable[[Core, Worker], None], ...]" = ()
    worker_gone: "tuple[Callable[[Core, Worker], None], ...]" = ()
    client_joined: "tuple[Callable[[Core, Client], None], ...]" = ()
    client_gone: "tuple[Callable[[Core, Client], None], ...]" = ()
    woken: "tuple[Callable[[Core], None], ...]" = ()


class Core:
    """The state, the policies, and the lists of one step."""

    def __init__(
        self,
        settings: SchedulerSettings,
        epoch: Epoch,
        services: Mapping[str, int],
        announced: Announced,
    ) -> None:
        self.settings = settings
        self.announced = announced
        self.services = services
        self.about = About()
        self.state = SchedulerState(settings, epoch)
        self.queuing = LateBinding(settings)
        self.admission = Admission(settings)
        self.placement = EarliestStart(settings, self.state.ways)
        self.stealing = TakeFromBacklog(self.placement)
        self.story = Story(settings.story_records_max)
        self.record: Callable[[Record], None] = self.story.records.append
        """Looked up once, since there are six records for a task."""
        self._hearers: dict[str, Callable[[Record], None]] = {}  # by who they are
        self.told: list[tuple[str, bytes]] | None = None  # topics and values, if anybody asks
        self.now = 0.0
        self.step = 0
        self.cause = ""
        self.wake_at: float | None = None  # when to be woken, at the latest
        self.starting: list[Task] = []  # released tasks that may have to be computed
        self.releasing: list[Task] = []  # tasks that may not be needed any more
        self.adopting: list[Task] = []  # tasks that some worker has, or may have, from before
        self.silence_due_at = 0.0  # before, no worker can have been silent for too long
        self.clients_due_at = inf  # before, no client can have been silent for too long
        self.silent_clients: list[Client] = []  # whose connections are to end
        self.combed_at = 0.0  # when tasks were last looked at for one that was left out
        self.combed_up_to = 0  # how many of them, in their order
        self.listening_since = 0.0  # without a break in which nobody could be heard
        self.late_seconds = 0.0  # by which time has come too late for what this step does
        self.nforgets_left = 0  # tasks that this step may still forget
        self.nplacements_left = 0  # ready tasks that this step may still place
        self.nlooks_left = 0  # looks of workers for something to do that are left to this step
        self.ready: list[Task] = []  # waiting tasks that have all inputs
        self.refill: dict[Worker, None] = {}  # workers with another load, new room or new backlog
        self.freeing: dict[Worker, list[TaskId]] = {}  # replicas to be dropped
        self.speaking: dict[Worker | Client, None] = {}  # peers whose outbox isn't empty
        self.sent_away: dict[Worker, str] = {}  # workers that were removed, and why they close
        self.warnings: list[str] = []  # for the log
        self.attended: dict[Task, None] | None = None
        """Tasks whose results came or went in this step; None if nobody attends to that."""
        self.has_new_demand = False  # a task was queued that needs resources, or may go elsewhere
        self.has_new_heavy = False  # a task that weighs was queued, or more is known of such
        self.noffers_left = 0  # of tasks that weigh to workers, that are left to this step
        self.nsends_left = 0  # of queued tasks, that are left to this step
        self.roomier: Worker | None = None  # for which another has left a task that weighs
        self.roomiest: tuple[int, Worker | None] = (0, None)  # step, and who has most memory then
        self.stranded_before: dict[Task, float] = {}  # tasks that no worker may run go on waiting
        self.unmet: dict[DemandKey, None] = {}  # what no worker has, as this step has found
        self.held_back: dict[Worker, None] = {}
        """Workers that were kept free for a more urgent task when tasks with demands were last
        sent; also those that had to be left alone by a suspect one."""
        self.awaiting: dict[tuple[Client, int], Callable[[], bool]] = {}
        """Calls that wait for workers: (client, request) -> answers it if that is possible now."""

    def have_told(self, hear: Callable[[Record], None] | None, who: str = "the shell") -> None:
        """Have `hear` told of each transition as it is recorded; None: `who` is not any more."""
        self._hearers.pop(who, None)
        if hear is not None:
            self._hearers[who] = hear
        append, hearers = self.story.records.append, list(self._hearers.values())
        if not hearers:
            self.record = append
            return

        def record(entry: Record) -> None:
            append(entry)
            for hear in hearers:
                hear(entry)

        self.record = record

    def move(self, task: Task, state: str, why: int = 0) -> None:
        """The only assignment to a task's state in the program; hooks read the story it leaves.

        `why`: of a placement, where and for what reason; see `model/reasons.py`.
        """
        before = task.state
        assert (before, state) in DECLARED, f"{task!r} can't become {state}"
        self.record((self.now, task.key, before, state, self.cause, self.step, why))
        ntasks = self.state.ntasks
        ntasks[before] -= 1
        ntasks[state] += 1
        ntasks = task.prefix.ntasks
        ntasks[before] -= 1
        ntasks[state] += 1
        task.state = state

    def to_worker(self, worker: Worker, message: Message) -> None:
        """Say `message` to `worker` at the end of this step."""
        worker.outbox.append(message)
        self.speaking[worker] = None

    def send_away(self, worker: Worker, reason: str) -> None:
        """Have a worker that was removed close; its connection ends with this step."""
        self.to_worker(worker, Shutdown(reason))
        self.sent_away[worker] = reason

    def to_client(self, client: Client, message: Message) -> None:
        """Say `message` to `client` at the end of this step."""
        client.outbox.append(message)
        self.speaking[client] = None

    def free(self, worker: Worker, task: TaskId) -> None:
        """Have `worker` drop the value it holds under this number."""
        tasks = self.freeing.get(worker)
        if tasks is None:
            self.freeing[worker] = [task]
        else:
            tasks.append(task)

    def say_what_to_free(self, worker: Worker) -> None:
        """Put what `free` noted for `worker` into its outbox.

        Before any run that uses the numbers again; for the other workers last of all, since there
        is no hurry, and each frame sent delays the next.
        """
        self.to_worker(worker, FreeReplicas(self.freeing.pop(worker)))

    def new_run(self) -> RunId:
        """A number that no run had before."""
        run = RunId(self.state.next_run)
        self.state.next_run += 1
        return run

    def wake_by(self, at: float) -> None:
        """See to it that the machine is woken at `at` (s, monotonic) or before; inf: never."""
        if at < inf and (self.wake_at is None or at < self.wake_at):
            self.wake_at = at
