"""A client in another process: it shares what this one has, dies, and comes back."""

import logging
import threading
from concurrent.futures import CancelledError

import dask
import dask.array
import dask.dataframe
import pytest

from shoal import Client, Event, Future, LocalCluster, Lock, Queue, Variable, get_client, wait
from shoal.ids import ClientTaskId, CodeId
from shoal.protocol.messages import SubmitTasks
from tests.programs import run_python

SECOND = """
import asyncio, os, sys
from shoal import Client, Event, Future, Lock, Queue, Variable

address, token, face, part = sys.argv[1:]
options = {"security": bytes.fromhex(token)}


async def ask(value):
    return await value if face == "asynchronous" and not isinstance(value, Future) else value


async def meet(client):
    numbers = await ask(client.get_dataset("numbers"))
    assert await ask(client.gather(numbers)) == [1, 2, 3]
    named = Future("by its key", client)
    assert await ask(named.result()) == 7
    given = await ask(Queue("there", client=client).get(timeout=10))
    total = client.submit(sum, [given, named, *numbers], key="total")
    await ask(Queue("back", client=client).put(total))
    await ask(Variable("latest", client=client).set(client.submit(abs, -4)))
    await ask(client.publish_dataset(of_the_second=client.submit(abs, -5)))
    assert await ask(Lock("held", client=client).acquire())
    only_here = client.submit(until_somebody_says_so, key="of nobody else")
    assert await ask(Event("has begun", client=client).wait(timeout=10))
    sys.stdout.write("dies")
    sys.stdout.flush()
    os._exit(3)  # as if it had been killed


async def come_back(client):
    assert await ask((await ask(client.get_dataset("of_the_second"))).result()) == 5
    assert await ask(client.list_datasets()) == ("numbers", "of_the_second")
    print("is back")


def until_somebody_says_so():
    Event("has begun").set()
    assert Event("may end").wait(timeout=20)


async def play():
    async with Client(address, asynchronous=True, **options) as client:
        await parts[part](client)

parts = {"meet": meet, "come back": come_back}
if face == "asynchronous":
    asyncio.run(play())
else:
    with Client(address, **options) as client:
        try:
            parts[part](client).send(None)
        except StopIteration:
            pass
"""


def value_in(client):
    """Run in a task: what the second client has left there, by the task's own client."""
    return Variable("latest", client=get_client()).get(timeout=10).result()


def once_it_may(value):
    """Run in a task."""
    Event("may go on").wait(timeout=20)
    return value


def deepest(values):
    return values["of"][0]


@pytest.fixture
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as started:
        yield started


@pytest.mark.parametrize("face", ["asynchronous", "blocking"])
def test_another_process_shares_what_there_is_and_leaves_nothing_but_what_it_published(
    cluster, face, tmp_path
):
    script = tmp_path / "second.py"
    script.write_text(SECOND)
    who = (str(script), cluster.scheduler_address, cluster.token.hex(), face)
    with Client(cluster) as client:
        numbers = client.map(abs, [-1, -2, -3])
        client.publish_dataset(numbers=numbers)
        named = client.submit(abs, -7, key="by its key")
        given = client.submit(abs, -10)
        wait([named])
        Queue("there").put(given)
        died = run_python(*who, "meet")
        assert (died.returncode, died.stdout, died.stderr) == (3, "dies", "")
        # What it kept for itself is let go of, as soon as its connection has ended.
        held = Lock("held")
        assert held.acquire(timeout=10)
        held.release()
        # What it shared has outlived it.
        assert Queue("back").get(timeout=10).result(timeout=10) == 10 + 7 + 1 + 2 + 3
        assert Variable("latest").get(timeout=10).result(timeout=10) == 4
        assert client.submit(value_in, 0, pure=False).result(timeout=10) == 4
        assert client.list_datasets() == ("numbers", "of_the_second")
        with pytest.raises(CancelledError, match="not known to the scheduler"):
            Future("of nobody else", client).result(timeout=10)
        back = run_python(*who, "come back")
        assert (back.returncode, back.stdout, back.stderr) == (0, "is back\n", "")
        client.unpublish_dataset("numbers")
        client.unpublish_dataset("of_the_second")
        Variable("latest").delete()


def test_what_one_client_has_just_submitted_is_an_input_of_the_others_task(cluster):
    """Though it is large on its way, one of many, or let go of by the one that submitted it."""
    with Client(cluster) as one, Client(cluster, set_as_default=False) as other:
        assert other.submit(abs, one.submit(len, bytes(900_000))).result(timeout=10) == 900_000
        many = one.map(abs, range(5000))
        assert other.submit(sum, many[-3:]).result(timeout=10) == 3 * 4998
        assert sum(other.gather(other.map(abs, many))) == sum(range(5000))


def test_collections_of_one_client_are_computed_with_another_of_the_process(cluster):
    """Whichever of them is asked, and though the one that made them is closed before."""
    with Client(cluster) as other:
        one = Client(cluster, set_as_default=False)
        array = one.persist(dask.array.ones(10, chunks=5))
        frame = one.persist(dask.dataframe.from_dict({"x": range(10)}, npartitions=2))
        slow = one.submit(sum, [1, 2])
        assert array.sum().compute() == 10
        assert other.compute(frame.x.sum()).result(timeout=10) == 45
        assert list(other.compute(array, sync=True)) == [1] * 10
        assert one.compute(other.persist(array + 1).sum()).result(timeout=10) == 20
        assert dask.delayed(deepest)({"of": [slow]}).compute() == 3
        other.publish_dataset(array=array, frame=frame)
        assert other.get_dataset("frame").x.max().compute() == 9
        one.close()
        assert other.get_dataset("frame").x.min().compute() == 0  # the very frame that we have
        assert array.sum().compute() == 10
        other.unpublish_dataset("frame")
        other.unpublish_dataset("array")


def test_two_clients_that_need_each_others_pending_results_do_not_wait_for_each_other(cluster):
    """Each waits until the scheduler has heard the other, for ten seconds if it hears nothing."""
    with Client(cluster) as one, Client(cluster, set_as_default=False) as other:
        mine = one.submit(once_it_may, 1, pure=False)
        others = other.submit(once_it_may, 10, pure=False)
        second, first = other.submit(abs, mine), one.submit(abs, others)
        graphs = [
            other.get({"x": (abs, mine)}, "x", sync=False),
            one.get({"y": (abs, others)}, "y", sync=False),
        ]
        Event("may go on", client=one).set()
        for future, value in zip([first, second, *graphs], [10, 1, 1, 10], strict=True):
            assert future.result(timeout=5) == value
        third = one.submit(abs, other.submit(abs, one.submit(abs, -20)))
        assert third.result(timeout=5) == 20


def test_what_can_not_travel_is_named_with_what_to_do_instead(cluster):
    with Client(cluster) as client:
        for deed, words in [
            (lambda: client.submit(lambda: client), "contains a client.*\n.*get_client"),
            (lambda: client.map(lambda _: client, [1]), "contains a client.*\n.*get_client"),
            (lambda: dask.delayed(lambda: client)().compute(), "contains a client"),
            (lambda: client.scatter({"lock": threading.Lock()}), "'lock', a value of type _thr"),
            (lambda: client.publish_dataset(lock=threading.Lock()), "'lock', a value of type _thr"),
        ]:
            with pytest.raises(TypeError, match=words):
                deed()
        assert client.list_datasets() == ()
        assert not client.futures


def test_a_client_that_contradicts_itself_is_told_so_and_does_not_come_back(cluster, caplog):
    caplog.set_level(logging.CRITICAL, "shoal")
    caplog.set_level(logging.CRITICAL, "asyncio")
    with Client(cluster) as client:
        unknown = SubmitTasks(ClientTaskId(1), ["x"], [CodeId(7)], [b""], [], ["x"], [])
        client.session.say(unknown)
        with pytest.raises(CancelledError, match="a code that was not defined"):
            client.submit(abs, -1).result(timeout=10)
        assert client.status == "closed"
    with Client(cluster) as client:
        assert client.submit(abs, -1).result(timeout=10) == 1
