"""What is known by its name, without a scheduler: names, values on their way, errors."""

import asyncio
import pickle

import numpy
import pytest

from shoal import Event, Future, Lock, MultiLock, Pub, Queue, Semaphore, Variable
from shoal.client.coordination.described import KINDS, described
from shoal.client.coordination.errors import (
    NotAwaited,
    NotBound,
    NotHeld,
    NothingCame,
    NotLocked,
    QueueClosed,
    ValueTooLarge,
)
from shoal.client.coordination.named import Done, name_on_wire
from shoal.client.coordination.values import VALUE_BYTES_MAX, Packed, unpack
from shoal.errors import FutureUnknown, InconsistentLeases, LockNotKnown
from shoal.protocol.coordination import Claimant, DeleteVariable, NamedDescription, Publish


@pytest.mark.parametrize("name", [1, ("a", 1), ["a", 1], b"123", "123", 0])
def test_a_name_may_be_whatever_a_key_can_be(name):
    for made in (Lock(name), Event(name), Variable(name), Queue(name)):
        assert made.name == name
        assert pickle.loads(pickle.dumps(made)).name == name


def test_different_names_are_different_on_the_wire():
    names = [1, "1", b"1", ("1",), 1.5]
    assert len({name_on_wire(name) for name in names}) == len(names)
    with pytest.raises(TypeError, match="can't be"):
        Lock({"a": 1})


def test_without_a_name_each_is_its_own():
    assert Lock().name != Lock("").name
    assert Semaphore().name.startswith("semaphore-")
    assert Lock("a").id != Lock("a").id


@pytest.mark.parametrize("name", ["", "x"])
def test_what_is_sent_to_thousands_of_tasks_is_small_and_asks_nobody(name):
    made = [Lock(name), Event(name), Variable(name), Queue(name), Semaphore(5, name)]
    for thing in [*made, MultiLock(["x", "y"])]:
        assert len(pickle.dumps(thing)) < 200
        copy = pickle.loads(pickle.dumps(thing))
        assert copy.client is None
        assert repr(copy)


def test_used_without_a_client_it_says_so():
    with pytest.raises(NotBound, match=r"<Event: a> is not properly initialized here\. No clients"):
        Event("a").set()
    assert issubclass(NotBound, RuntimeError)
    assert issubclass(NotBound, ValueError)
    assert Semaphore().scheduler is None


class Connecting:
    """The client of a coroutine's task, which somebody has begun to connect."""

    is_blocking = False
    asynchronous = True
    status = "connecting"

    def __init__(self):
        self.said = []

    @property
    def session(self):
        assert self.status == "running"
        return self

    def say(self, message):
        self.said.append(message)

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        self.status = "running"
        return self


def test_what_needs_no_answer_is_said_once_the_client_is_connected():
    async def scenario():
        client = Connecting()
        await Pub("x", client=client).put(1)
        await Variable("x", client=client).delete()
        assert [type(message) for message in client.said] == [Publish, DeleteVariable]

    asyncio.run(scenario())


def test_older_ways_to_name_the_client_are_understood():
    class Client:
        session = None

    client = Client()
    for lock in (Lock("a", client), Lock("a", client=client), Lock("a", scheduler_rpc=client)):
        assert lock.client is client
    assert Lock("a", object(), object())._client is None


def test_a_value_goes_in_pieces_with_the_keys_of_its_futures():
    class Odd:
        def __init__(self, inside):
            self.inside = inside

    future = Future("a", client=None)
    array = numpy.arange(10_000)
    packed = Packed("queue 'q'", [array, Odd([future, future]), Future(("b", 1))])
    assert packed.keys == ["a", name_on_wire(("b", 1))]
    assert len(packed.pieces) == 2
    found, odd, other = unpack(None, packed.pieces)
    assert (found == array).all()
    assert found.flags.writeable
    assert [inside.key for inside in odd.inside] == ["a", "a"]
    assert other.key == ("b", 1)


def test_a_value_that_is_data_is_refused():
    with pytest.raises(ValueTooLarge, match=r"client\.scatter"):
        Packed("queue 'q'", bytes(VALUE_BYTES_MAX + 1))
    with pytest.raises(ValueError, match="takes no more than 64"):
        Packed("queue 'q'", numpy.zeros(VALUE_BYTES_MAX))


@pytest.mark.parametrize(
    "error",
    [
        NotHeld("Lock", "x"),
        NotLocked("MultiLock", "x"),
        NotAwaited("Lock", "x"),
        NotBound("<Lock: x>"),
        NothingCame("value in the queue 'x'", 1.5),
        QueueClosed("value", ("x", 1)),
        ValueTooLarge("queue 'x'", 2**30, 2**20),
        InconsistentLeases("x", 1, 2),
        LockNotKnown("x"),
        FutureUnknown(("a", 1), "queue 'x'"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_the_way(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_what_is_known_is_shown_by_kind_and_name():
    task = Claimant("Client-1", name_on_wire(("f", 1)), "tcp://a:1", 2.0)
    other = Claimant("Client-2", "", "", 0.5)
    found = [
        NamedDescription(kind, name_on_wire(("x", 1)), [task], [other], 1, 3) for kind in KINDS
    ]
    shown = described(found)
    assert list(shown) == list(KINDS.values())
    facts = shown["locks"]["x", 1]
    assert facts["holder"]["task"] == ("f", 1)
    assert facts["max_leases"] == 3
    assert facts["waiting"] == [
        {"client": "Client-2", "task": None, "worker": None, "seconds": 0.5}
    ]
    assert shown["queues"]["x", 1]["maxsize"] == 3
    assert shown["events"]["x", 1]["is_set"] is True


def test_what_is_done_can_be_awaited_and_need_not_be():
    async def scenario():
        assert await Done(5) == 5
        assert await asyncio.gather(Done(1), Done(2)) == [1, 2]
        Done(3)

    asyncio.run(scenario())
