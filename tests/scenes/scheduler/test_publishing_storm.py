"""Whatever else happens meanwhile, what is published is kept, and nothing is once it is not."""

import pytest

from shoal.ids import ClientTaskId, Key
from shoal.protocol.datasets import GetDatasets, PublishDatasets, UnpublishDatasets
from shoal.protocol.logs import ForwardLogs
from shoal.protocol.messages import ReleaseTasks
from shoal.protocol.metadata import CollectedTasks, CollectTasks
from shoal.protocol.topics import SubscribeTopics, TellTopics, UnsubscribeTopics
from shoal.scheduler.model.keepers import DETACHED
from tests.scenes.scheduler.storm import CLIENTS, Storm

NAMES = [Key(name) for name in ("m", "n", "o")]
TOPICS = ("x", "y", "all", "tcp://a:1")
SEEDS = range(30)
NEVENTS = 150
LENT_MAX = 1000


class Publishing(Storm):
    """A storm in which clients publish, get, collect and listen as well."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.events += [
            (3, self.publish_some),
            (3, self.get_some),
            (3, self.give_back_some),
            (2, self.unpublish_some),
            (1, self.listen),
            (1, self.tell),
            (1, self.collect),
        ]

    def publish_some(self) -> None:
        """What some client wants, under one name or two."""
        client = self.random.choice(CLIENTS)
        own = [number for number in self.actor(client).client.tasks if number > 0]
        names = self.random.sample(NAMES, self.random.choice([1, 2]))
        tasks = [self.random.sample(own, min(len(own), 2)) for _ in names]
        override = self.random.random() < 0.5
        payloads = [b"value"] * len(names)
        self.call(
            PublishDatasets, client, names=names, payloads=payloads, tasks=tasks, override=override
        )

    def get_some(self) -> None:
        """Numbers of what is lent are known only afterwards, so they get a name before."""
        client = self.random.choice(CLIENTS)
        actor, first = self.actor(client), self.machine.state.next_loan
        actor.keys.update({ClientTaskId(-first - i): "lent" for i in range(LENT_MAX)})
        self.call(GetDatasets, client, names=self.random.sample(NAMES, 2))

    def give_back_some(self) -> None:
        """A client has futures of its own by now, or wants none."""
        client = self.random.choice(CLIENTS)
        lent = [number for number in self.actor(client).client.tasks if number < 0]
        if lent:
            self.from_client(client, ReleaseTasks(lent[: self.random.randint(1, len(lent))]))

    def unpublish_some(self) -> None:
        """Whoever did not publish it may do so too."""
        self.call(UnpublishDatasets, self.random.choice(CLIENTS), names=[self.random.choice(NAMES)])

    def listen(self) -> None:
        """Or listen no more."""
        client, topic = self.random.choice(CLIENTS), self.random.choice(TOPICS)
        kind = self.random.choice([SubscribeTopics, UnsubscribeTopics])
        self.from_client(client, kind([topic]))
        level = self.random.choice([None, 10, 30])
        self.call(ForwardLogs, client, topic="logs", logger="", level=level)

    def tell(self) -> None:
        """Under some topic."""
        topics = [self.random.choice(TOPICS)]
        self.call(TellTopics, self.random.choice(CLIENTS), topics=topics, value=b"N.")

    def collect(self) -> None:
        """Begin or end."""
        kind = self.random.choice([CollectTasks, CollectedTasks])
        self.call(kind, self.random.choice(CLIENTS), name="n")


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_what_is_published_is_there_and_then_nothing_is(seed: int) -> None:
    """The books are looked at after each event; here it is asked what came of it."""
    scene = Publishing(seed)
    scene.blow(NEVENTS)
    scene.calm()
    assert scene.unfinished() == []

    for client in list(scene.actors):
        scene.lose_client(client)
    scene.calm()
    state = scene.machine.state
    kept = {task for keeper in state.keepers.values() for task in keeper.tasks.values()}
    assert set(state.keepers) <= {dataset.keeper for dataset in state.datasets.values()}
    assert {task.state for task in kept} <= {"memory", "erred"}
    assert (state.forwarding, state.collections) == ({}, {})
    assert DETACHED not in state.keepers

    scene.actors.clear()
    scene.call(UnpublishDatasets, "late", names=NAMES)
    scene.lose_client("late")
    scene.calm()
    assert (state.tasks, state.task_by_id, state.codes, state.keepers) == ({}, {}, {}, {})
    assert scene.left_over() == []
