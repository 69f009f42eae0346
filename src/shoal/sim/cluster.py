"""Who takes part in one run, and who is where."""

from collections.abc import Sequence

from shoal.ids import Epoch
from shoal.sim.client_side import ClientActor
from shoal.sim.faults import SCHEDULER, client_name, worker_name
from shoal.sim.network import End
from shoal.sim.oracle import Oracle
from shoal.sim.plan import Plan, WorkerPlan
from shoal.sim.returning import Heritage
from shoal.sim.scheduler_side import SchedulerActor
from shoal.sim.stage import Stage
from shoal.sim.trading import Trades
from shoal.sim.worker_side import WorkerActor


class Place:
    """Where a worker may be: an address, and the process that is there now, if any."""

    def __init__(self, cluster: "Cluster", index: int, plan: WorkerPlan) -> None:
        self.cluster = cluster
        self.index = index
        self.plan = plan
        self.address = worker_name(index)
        self.worker: WorkerActor | None = None
        self.had_bytes = 0  # the process before, if its memory was full
        self.nlives = 0

    def start(self) -> None:
        """A new process takes the place, unless one is there."""
        if self.worker is None:
            self.nlives += 1
            had_bytes, self.had_bytes = self.had_bytes, 0
            self.worker = WorkerActor(self.cluster, self.address, self.nlives, self.plan, had_bytes)
            self.worker.start()

    def crash(self) -> None:
        """The process is gone."""
        if self.worker is not None:
            self.worker.die()
            self.worker = None


class Cluster(Stage):
    """Everybody that takes part in one run."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.scheduler = SchedulerActor(self)
        self.places = [Place(self, i, worker) for i, worker in enumerate(plan.workers)]
        self.clients: list[ClientActor | None] = []
        self._nclients_ever = 0

    def start(self) -> None:
        """Let the clients come, and the workers when the plan says so."""
        self.scheduler.begin()
        for place in self.places:
            self.world.at(place.plan.joins_at, place.start)
        for index in range(self.plan.nclients):
            self.clients.append(None)
            self.start_client(index)

    # --- who is where ------------------------------------------------------------------------

    def worker_at(self, address: str) -> WorkerActor | None:
        """The process at an address, if one is there."""
        for place in self.places:
            if place.address == address:
                return place.worker
        return None

    def live_workers(self) -> list[WorkerActor]:
        """Every process that is there now."""
        return [place.worker for place in self.places if place.worker is not None]

    def live_clients(self) -> list[ClientActor]:
        """Every client that is connected, as far as it knows."""
        return [client for client in self.clients if client is not None and not client.is_over]

    def start_client(self, index: int, heritage: Heritage | None = None) -> None:
        """A new client takes the place; its name was never used before.

        `heritage`: what one before wanted, that has lost its scheduler.
        """
        self._nclients_ever += 1
        name = f"{client_name(index)}.{self._nclients_ever}"
        known = None if heritage is None else [worker.address for worker in self.live_workers()]
        client = self.clients[index] = ClientActor(self, name, client_name(index), known)
        if heritage is not None:
            client.ask_again(heritage)

    def client_is_over(self, name: str) -> None:
        """A client has lost its scheduler; its user starts another one."""
        for index, client in enumerate(self.clients):
            if client is not None and client.name == name:
                self.world.after(0.001, self._restart_client, index, client)

    def lock_is_held(self, client: str, name: str) -> None:
        """A client has been granted a lock; who lost his connection has lost his locks with it."""
        for other in self.live_clients():
            if other.name != client and name in other.locking.holding and other.end.is_whole:
                self.fail("one holds a lock", f"{client} and {other.name} hold {name!r}")

    def values_are_taken(self, client: str, values: Sequence[str]) -> None:
        """What somebody has who is still connected can't come a second time."""
        connected = [other.name for other in self.live_clients() if other.end.is_whole]
        for value in values:
            before = self.trades.taken.get(value)
            if before in connected:
                self.fail("values are taken once", f"{client} and {before} took {value!r}")
            self.trades.taken[value] = client

    def _restart_client(self, index: int, client: ClientActor) -> None:
        if self.clients[index] is client:
            self.start_client(index, None if self.definite is None else client.heritage())

    def restart_scheduler(self) -> None:
        """The scheduler's process dies; another takes its place, with a journal at most."""
        old = self.scheduler
        self.oracle = Oracle(self.specs, self.plan.memory_max, self.definite)
        self.trades = Trades()
        self.epoch = Epoch(self.epoch + 1)
        self.scheduler = SchedulerActor(self)
        old.die()
        self.scheduler.begin()

    # --- how they speak ----------------------------------------------------------------------

    def dial_scheduler(self, place: str) -> End:
        """A new connection to the scheduler."""
        connection = self.network.connect(place, SCHEDULER)
        self.scheduler.accept(connection.b)
        return connection.a

    def memory_is_full(self, address: str, nbytes: int) -> None:
        """A worker's nanny ends its process, and starts another one."""
        for place in self.places:
            if place.address == address:
                place.crash()
                place.had_bytes = nbytes
                self.world.after(0.05, place.start)

    def close_worker(self, address: str) -> None:
        """The scheduler has sent a worker away; its nanny starts another one."""
        for place in self.places:
            if place.address == address:
                place.crash()
                self.world.after(0.05, place.start)
