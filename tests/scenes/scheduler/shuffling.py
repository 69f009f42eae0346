"""Shuffles on the stage: who defines them, and what transfers and unpacks say of them."""

import pickle
import struct
from collections.abc import Mapping, Sequence

from shoal.ids import Key
from shoal.protocol.shuffles import (
    DefineShuffles,
    LocateShards,
    ShardsJoined,
    ShardsMade,
    ShuffleDefinition,
)
from tests.scenes.scheduler.scene import Scene

GIB = 1 << 30


def submit_shuffle(
    scene: Scene,
    id: str = "s",
    *,
    ninputs: int = 2,
    noutputs: int = 2,
    client: str = "c",
    wanted: Sequence[str] | None = None,
) -> None:
    """Transfers t0, t1, ..., the barrier `s`, and unpacks u0, u1, ..., which are wanted.

    Of any other shuffle than `s`, all keys begin with its id.
    """
    prefix = "" if id == "s" else id
    unpacks = [f"{prefix}u{i}" for i in range(noutputs)]
    define(scene, id, ninputs, {key: i for i, key in enumerate(unpacks)}, client=client)
    transfers = [f"{prefix}t{i}" for i in range(ninputs)]
    scene.submit(
        client,
        wanted=unpacks if wanted is None else wanted,
        **{key: [] for key in transfers},
        **{id: transfers},
        **{key: [id] for key in unpacks},
    )


def define(
    scene: Scene, id: str, ninputs: int, outputs: Mapping[str, int], *, client: str = "c"
) -> None:
    """A barrier of this key is about to come."""
    by_key = {Key(key): output for key, output in outputs.items()}
    noutputs = len(set(outputs.values()))
    definition = ShuffleDefinition(id, Key(id), ninputs, noutputs, "table", by_key)
    scene.actor(client)
    scene.from_client(client, DefineShuffles([definition]))


def cut(
    scene: Scene,
    key: str,
    *,
    of: str = "s",
    digest: int = 7,
    nbytes: Sequence[int] = (10, 10),
    on: str = "",
    nth: int = 0,
) -> None:
    """A transfer says what it has cut, and ends; 100 rows each.  The shards are on disk."""
    worker, task, run = scene.run(key, on, nth)
    number = int("".join(letter for letter in key if letter.isdigit()))
    said = struct.pack(f"<{len(nbytes)}Q", *nbytes)
    scene.from_worker(
        worker.name, ShardsMade(task, run, of, number, 100, digest, sum(nbytes), said)
    )
    scene.finish(key, on=on, nth=nth)


def all_cut(scene: Scene) -> None:
    """The shuffle `s` of two by two: a has the shards of t0, b those of t1."""
    scene.workers("a", "b")
    submit_shuffle(scene)
    cut(scene, "t0")
    cut(scene, "t1")


def join(scene: Scene, key: str, output: int, *, of: str = "s", nbytes: int = 20) -> None:
    """An unpack has all its rows, and ends."""
    worker, task, run = scene.run(key)
    message = ShardsJoined(task, run, of, output, epoch(scene, of), 100, nbytes)
    scene.from_worker(worker.name, message)
    scene.finish(key)


def epoch(scene: Scene, id: str = "s") -> int:
    """The present epoch of a shuffle."""
    return scene.machine.state.shuffles[id].epoch


def locate(scene: Scene, name: str, *, of: str = "s", in_epoch: int = 0) -> list[str]:
    """What a worker hears that asks where the shards are, in the present epoch or another."""
    scene.take()
    scene.names.calls[99] = LocateShards
    scene.from_worker(name, LocateShards(99, of, in_epoch or epoch(scene, of)))
    return scene.take()


def value_of(scene: Scene, id: str = "s") -> int:
    """The value of a barrier that is in memory."""
    value = scene.task(id).value
    assert value is not None
    number: int = pickle.loads(value)
    return number
