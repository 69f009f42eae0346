"""Types that a program registered serializers for really travel that way, whichever face asks."""

import threading
from pathlib import Path

import numpy as np
import pytest
from dask import delayed

from shoal.protocol.families import registry
from shoal.testing.clusters import gen_cluster
from tests.cluster.faces import ask

LARGE = 200_000


class Sealed:
    """Can't be pickled; counts how it came here."""

    def __init__(self, text):
        self.text = text
        self.lock = threading.Lock()
        self.came = []


def from_sealed(value):
    return {"came": [*value.came, "serialized"]}, [value.text.encode()]


def to_sealed(header, frames):
    made = Sealed(bytes(frames[0]).decode())
    made.came = header["came"]
    return made


class Preferred:
    """Could be pickled, and has a serializer that is to be used instead."""

    came = "by pickle"


def to_preferred(header, frames):
    made = Preferred()
    made.came = "by its serializer"
    return made


def came_of(value):
    return value.came


class Unreadable:
    """Can be serialised, and then not be read."""


def refuse(header, frames):
    raise ValueError("cannot rebuild")


class Unwritable:
    """Its serializer fails."""


def fail(value):
    raise ValueError("cannot take apart")


registry.register_serialization(Sealed, from_sealed, to_sealed)
registry.register_serialization(Preferred, lambda value: ({}, []), to_preferred)
registry.register_serialization(Unreadable, lambda value: ({}, []), refuse)
registry.register_serialization(Unwritable, fail, refuse)


class Unstable:
    """Fails the first time that it is read."""

    def __init__(self, flag):
        self.flag = flag

    def __getstate__(self):
        return self.flag

    def __setstate__(self, flag):
        self.flag = flag
        if not Path(flag).exists():
            Path(flag).touch()
            raise MemoryError("transient")


class Unloadable:
    """Pickles, and can't be rebuilt."""

    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        raise ValueError("cannot rebuild")


def same(value):
    return value


def seal(text):
    return Sealed(text)


def text_of(*values):
    return [value.text for value in values]


def total_of(array):
    return float(array.sum())


def ones(n):
    return np.broadcast_to(1.0, (n, n))


async def two_workers(client):
    return sorted((await ask(client.scheduler_info()))["workers"])


async def results(client):
    """From a worker to the client: small and large, alone and inside of others."""
    small = await ask(client.submit(seal, "small", pure=False).result())
    assert (small.text, small.came) == ("small", ["serialized"])
    large = await ask(client.submit(seal, "x" * LARGE, pure=False).result())
    assert (len(large.text), large.came) == (LARGE, ["serialized"])


async def between_workers(client):
    """From one worker to another, and to the client from there."""
    a, b = await two_workers(client)
    for text in ("small", "x" * LARGE):
        made = client.submit(seal, text, workers=[a], pure=False)
        taken = client.submit(same, made, workers=[b], pure=False)
        value = await ask(taken.result())
        assert (value.text, value.came) == (text, ["serialized", "serialized"])


async def scattered_and_arguments(client):
    [kept] = await ask(client.scatter([Sealed("kept")]))
    assert await ask(client.submit(text_of, kept, Sealed("given")).result()) == ["kept", "given"]
    assert (await ask(client.gather(kept))).text == "kept"


async def in_graphs(client):
    value = client.compute(delayed(same)(delayed(Sealed("in a graph"))))
    assert (await ask(value.result())).text == "in a graph"
    came = client.compute(delayed(came_of)(delayed(Preferred())))
    assert await ask(came.result()) == "by its serializer"
    assert await ask(client.submit(came_of, Preferred()).result()) == "by its serializer"


@pytest.mark.parametrize("scenario", [results, between_workers, scattered_and_arguments, in_graphs])
def test_a_taught_type_travels_by_its_serializer(play_in_processes, scenario):
    play_in_processes(scenario)


async def failures(client):
    a, b = await two_workers(client)
    for kind, text in ((Unreadable, "cannot rebuild"), (Unloadable, "cannot rebuild")):
        made = client.submit(kind, workers=[a], pure=False)
        with pytest.raises(ValueError, match=text):
            await ask(client.submit(same, made, workers=[b], pure=False).result(timeout=15))
        with pytest.raises(ValueError, match=text):
            await ask(made.result(timeout=15))
    made = client.submit(Unwritable, workers=[a], pure=False)
    with pytest.raises(ValueError, match="cannot take apart") as caught:
        await ask(made.result(timeout=15))
    notes = " ".join(caught.value.__notes__)
    assert "fail" in notes
    assert "Unwritable" in notes
    assert await ask(client.submit(same, 1).result(timeout=15)) == 1  # and all goes on


def test_what_a_serializer_raises_is_at_the_future(play_in_processes):
    play_in_processes(failures)


async def once_unreadable(client, flag):
    a, b = await two_workers(client)
    made = client.submit(Unstable, flag, workers=[a], pure=False)
    taken = client.submit(type, made, workers=[b], pure=False)
    assert await ask(taken.result(timeout=15)) is Unstable


def test_a_value_that_can_not_be_read_once_is_read_again(play_in_processes, tmp_path):
    play_in_processes(lambda client: once_unreadable(client, str(tmp_path / "flag")))


async def repeated(client):
    """100 MB that repeat 8 bytes travel as those, between workers and to the client."""
    a, b = await two_workers(client)
    made = client.submit(ones, 3600, workers=[a])
    assert await ask(client.submit(total_of, made, workers=[b]).result()) == 3600.0**2
    array = await ask(made.result())
    assert (array.shape, array.strides) == ((3600, 3600), (0, 0))


def test_arrays_that_repeat_one_part_travel_as_that_part(play_in_processes):
    play_in_processes(repeated)


async def without_pickle(client):
    """Functions go as ever; values only as what the named families can write and read."""
    assert await ask(client.submit(len, [1, 2]).result()) == 2
    assert (await ask(client.submit(np.arange, 3).result())).tolist() == [0, 1, 2]
    assert await ask(client.submit(total_of, client.submit(np.arange, LARGE)).result()) > 0
    assert (await ask(client.submit(np.arange, LARGE).result())).shape == (LARGE,)
    sealed = await ask(client.submit(seal, "x").result())
    assert (sealed.text, sealed.came) == ("x", ["serialized"])
    [kept] = await ask(client.scatter([{"a": 1}]))
    assert await ask(client.submit(same, kept).result()) == {"a": 1}
    with pytest.raises(TypeError, match="pickle"):
        await ask(client.scatter([Path("x")]))
    with pytest.raises(TypeError, match="pickle"):
        await ask(client.submit(Path, "x").result())
    with pytest.raises(TypeError, match="pickle"):
        await ask(client.run(Path, "x"))
    assert set((await ask(client.run(len, "abc"))).values()) == {3}


def test_a_client_reads_and_writes_only_by_the_families_that_it_names(play_in_processes):
    play_in_processes(without_pickle, serializers=["dask", "msgpack"])


async def reading_plain_values(client):
    [kept] = await ask(client.scatter([np.arange(3)]))
    with pytest.raises(TypeError, match="msgpack"):
        await ask(client.gather(kept))
    assert await ask(client.submit(total_of, kept).result()) == 3.0


def test_what_is_read_may_be_less_than_what_is_written(play_in_processes):
    play_in_processes(
        reading_plain_values, serializers=["msgpack", "pickle"], deserializers=["msgpack"]
    )


class Told:
    """Goes by a family of its own, which is told who sends."""

    def __init__(self, sender=""):
        self.sender = sender


def tell(value, context=None):
    if not isinstance(value, Told):
        raise NotImplementedError
    return {"sender": context["sender"]["address"]}, [b""]


NAMED = {"serializers": ["told", "pickle"]}


@gen_cluster(client=True, client_kwargs=NAMED, worker_kwargs=NAMED)
async def test_a_family_of_ones_own_is_asked_and_told_who_sends(c, s, a, b):
    registry.register_serialization_family("told", tell, lambda header, _: Told(header["sender"]))
    try:
        made = c.submit(Told, workers=[a.address])
        taken = c.submit(same, made, workers=[b.address])
        assert (await taken).sender == b.address
        assert b.data[taken.key].sender == a.address
    finally:
        del registry.families["told"]
