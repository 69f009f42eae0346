"""Whenever a scheduler with a journal is killed, the next has all that is durable, as it was."""

import pytest

from shoal.ids import Key
from shoal.protocol.datasets import PublishDatasets, UnpublishDatasets
from shoal.protocol.detached import CancelKeys, DetachTasks
from shoal.protocol.messages import Message, RunTask, TaskFinished, TaskOptions
from shoal.protocol.orphans import AdoptReplicas, ReplicasAdopted
from shoal.scheduler.model.entities import ERRED, MEMORY, RELEASED, Task, Worker
from tests.scenes.scheduler.storm import CLIENTS, KEYS
from tests.scenes.scheduler.test_publishing_storm import Publishing

SEEDS = range(8)
NLIVES = 3
NEVENTS = 60


class Durable(Publishing):
    """A storm around a scheduler that keeps a journal; it is checked after each step that this says
    what is so."""

    def __init__(self, seed: int, disk: list[bytes], *, is_slow: bool = False) -> None:
        """`is_slow`: the disk, which has what was written a little later."""
        super().__init__(seed)
        self.seed = seed
        self.events += [(4, self.detach_some), (1, self.cancel_by_key), (1, self.make_an_actor)]
        self.adopting: list[tuple[Worker, AdoptReplicas]] = []
        self.syncs_at_once = not is_slow
        self.published: dict[Key, bytes] = {}  # as it was when the disk had it all
        if is_slow:
            self.events.append((6, self.sync))
        self.keep_journal(disk)

    def sync(self) -> None:
        self.published = {n: dataset.payload for n, dataset in self.machine.state.datasets.items()}
        super().sync()

    def detach_some(self) -> None:
        """What some client wants."""
        client = self.random.choice(CLIENTS)
        own = [number for number in self.actor(client).client.tasks if number > 0]
        some = self.random.sample(own, min(len(own), 2))
        self.from_client(client, DetachTasks(some))

    def cancel_by_key(self) -> None:
        """Whether or not it is wanted."""
        client, key = self.random.choice(CLIENTS), Key(self.random.choice(KEYS))
        self.from_client(client, CancelKeys([key], force=self.random.random() < 0.3))

    def make_an_actor(self) -> None:
        """And something that needs it; each is published."""
        client, n = self.random.choice(CLIENTS), self.random.randrange(3)
        self.submit(client, options=TaskOptions(actor=True), **{f"actor{n}": []})
        self.submit(client, **{f"of-actor{n}": [f"actor{n}"]})
        keys = [f"actor{n}", f"of-actor{n}"]
        numbers = [[self.actor(client).number(key) for key in keys]]
        names = [Key(f"with-actor{n}")]
        columns = {"names": names, "payloads": [b"value"], "tasks": numbers}
        self.call(PublishDatasets, client, override=True, **columns)

    def durable(self) -> list[Task]:
        """Tasks that outlive their clients, with all that they need."""
        needed: dict[Task, None] = {}
        due = [
            task
            for keeper in self.machine.state.keepers.values()
            if keeper.is_durable
            for task in keeper.tasks.values()
        ]
        while due:
            task = due.pop()
            if task not in needed:
                needed[task] = None
                due.extend(task.dependencies)
        return list(needed)

    def next_life(self, *, is_slow: bool = False, every: int = 1) -> "Durable":
        """The scheduler is killed; its workers come to the next one with all that they hold.

        Args:
            every: so many of the workers, one.
        """
        later = Durable(self.seed, self.disk, is_slow=is_slow)
        for worker in list(self.machine.state.workers.values())[::every]:
            held = dict.fromkeys(self.names.keys[number] for number in self.stores[worker])
            later.come_back(worker.name, *held, nthreads=worker.nthreads)
        while later.adopting:
            worker, said = later.adopting.pop(0)
            later.stores[worker].update(dict.fromkeys(said.tasks))
            actors = [key for key in said.keys if key.startswith("actor")]
            values = [b"proxy" if key in actors else None for key in said.keys]
            n = len(said.keys)
            answer = ReplicasAdopted(said.keys, said.tasks, [10] * n, values, [""] * n, actors)
            later._from_worker(worker, answer)
        return later

    def unfinished_in_calm(self) -> list[str]:
        """Durable tasks that have not ended, though all goes well, and nobody is waited for."""
        self.calm()
        self.advance(6.0)
        self.calm()
        return self.unfinished()

    def _finish(self, worker: Worker, run: RunTask, seconds: float) -> None:
        """The result of an actor's task is its proxy, which is always told."""
        if not run.key.startswith("actor"):
            super()._finish(worker, run, seconds)
            return
        self.stores[worker][run.task] = None
        self._from_worker(worker, TaskFinished(run.task, run.run, 10, seconds, b"proxy"))

    def _note_worker(self, worker: Worker, message: Message) -> None:
        super()._note_worker(worker, message)
        if isinstance(message, AdoptReplicas):
            self.adopting.append((worker, message))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_life_has_what_was_there_and_no_failure_that_was_not(seed: int) -> None:
    scene = Durable(seed, [])
    for _ in range(NLIVES):
        scene.blow(NEVENTS)
        later = scene.next_life()
        tasks = later.machine.state.tasks
        for before in scene.durable():
            after = tasks[before.key]
            if before.state == RELEASED and before.is_needed:
                continue  # it was still hoped for, and may be given up now
            assert (after.state == ERRED) == (before.state == ERRED), f"{before!r}, now {after!r}"
            assert after.failure == before.failure
            assert [each.key for each in after.dependencies] == [
                each.key for each in before.dependencies
            ]
            if before.state == MEMORY and before.is_needed and after.is_needed:
                assert after.state == MEMORY, f"{before!r} is {after!r}"
        assert set(tasks) == {task.key for task in scene.durable()}
        later.take()
        scene = later
    assert later.unfinished_in_calm() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_in_the_end_a_journal_says_nothing(seed: int) -> None:
    """However often the scheduler was killed, once nothing is published and all work is done."""
    scene = Durable(seed, [])
    scene.blow(NEVENTS)
    scene = scene.next_life()
    scene.blow(NEVENTS)
    for client in list(scene.actors):
        scene.lose_client(client)
    scene.actors.clear()
    names = list(scene.machine.state.datasets)
    scene.call(UnpublishDatasets, "late", names=names)
    scene.lose_client("late")
    assert scene.unfinished_in_calm() == []
    journal = scene.machine.state.journal
    assert journal is not None
    assert (journal.tasks, journal.codes, journal.changed, journal.touched) == ({}, {}, {}, {})
    said = scene._journaled
    assert (said.tasks, said.detached, said.datasets) == ({}, {}, {})


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_disk_had_is_there_whoever_is_lost_as_well(seed: int) -> None:
    """What was written last is lost with the scheduler, and so is every second worker: what is
    published is what somebody may have been told, and all work that is kept is done in the end."""
    scene = Durable(seed, [], is_slow=True)
    for _ in range(NLIVES):
        scene.blow(NEVENTS)
        later = scene.next_life(is_slow=True, every=2)
        there = {name: dataset.payload for name, dataset in later.machine.state.datasets.items()}
        assert there == scene.published
        later.take()
        later.sync()
        scene = later
    assert later.unfinished_in_calm() == []
