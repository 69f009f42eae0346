"""What happens in a cluster, told under topics, on either face."""

import asyncio
import threading
import warnings

import pytest

import shoal
from shoal import Client, Nanny, Scheduler, get_client, get_worker
from shoal.client.control.errors import UnknownTopic
from shoal.observe.inside import this_process
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask, play_asynchronous

NEAR = {**SMALL, "processes": False}

SECONDS = 20


class Heard:
    """A handler that keeps what it hears, and can be waited for in threads and on loops."""

    def __init__(self, n=1):
        self.values, self._n, self._all = [], n, threading.Event()

    def __call__(self, event):
        at, value = event
        assert at > 1.7e9
        self.values.append(value)
        if len(self.values) >= self._n:
            self._all.set()

    async def wait(self, client):
        """Wait for all of them, as long as SECONDS."""
        if client.is_blocking:
            assert self._all.wait(SECONDS)
        else:
            assert await asyncio.to_thread(self._all.wait, SECONDS)


class Mine:
    """A class of the user's own."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return isinstance(other, Mine) and self.x == other.x

    __hash__ = None


async def by_hand(client):
    await ask(client.log_event("x", {"a": (1, [2])}))
    await ask(client.log_event(["x", "y"], Mine(3)))
    (first, one), (second, two) = await ask(client.get_events("x"))
    assert one == {"a": (1, [2])}
    assert two == Mine(3)
    assert first <= second
    assert [value for _, value in await ask(client.get_events("y"))] == [Mine(3)]
    assert await ask(client.get_events("nothing")) == ()
    everything = await ask(client.get_events())
    assert {"x", "y", "all", client.id} <= set(everything)
    with pytest.raises(TypeError, match="a topic is a text"):
        await ask(client.log_event(5, 1))
    with pytest.raises(TypeError):
        await ask(client.log_event("x", threading.Lock()))


async def a_handler(client):
    heard = Heard(3)
    client.subscribe_topic("x", heard)
    for number in range(3):
        await ask(client.log_event("x", number))
    await heard.wait(client)
    assert heard.values == [0, 1, 2]
    client.unsubscribe_topic("x")
    with pytest.raises(UnknownTopic, match="known for topic x"):
        client.unsubscribe_topic("x")


async def a_second_handler(client):
    """Takes the place of the first."""
    first, second = Heard(), Heard()
    client.subscribe_topic("x", first)
    client.subscribe_topic("x", second)
    await ask(client.log_event("x", 1))
    await second.wait(client)
    assert (first.values, second.values) == ([], [1])


async def a_coroutine_function(client):
    """It runs on the client's loop."""
    heard = Heard()

    async def handle(event):
        await asyncio.sleep(0)
        heard(event)

    client.subscribe_topic("x", handle)
    await ask(client.log_event("x", 1))
    await heard.wait(client)
    assert heard.values == [1]


async def of_tasks(client):
    """A worker says who it is in what it tells, if that is a dict."""

    def tell():
        get_worker().log_event(["x"], {"a": 1})
        get_worker().log_event("x", [2])
        return get_worker().address

    heard = Heard(2)
    client.subscribe_topic("x", heard)
    address = await ask(client.submit(tell).result())
    await heard.wait(client)
    assert heard.values == [{"a": 1, "worker": address}, [2]]


async def of_membership(client):
    events = await ask(client.get_events("all"))
    assert {"add-worker", "add-client"} <= {event["action"] for _, event in events}
    address = min(await ask(client.nthreads()))
    assert [event["action"] for _, event in await ask(client.get_events(address))] == ["add-worker"]
    ((_, event),) = await ask(client.get_events(client.id))
    assert event == {"action": "add-client", "client": client.id}


async def of_graphs(client):
    await ask(client.gather(client.map(int, range(200))))
    ((_, event),) = await ask(client.get_events("scheduler"))
    assert event["action"] == "update-graph"
    assert event["metrics"]["tasks"] == 200


SCENARIOS = [
    by_hand,
    a_handler,
    a_second_handler,
    a_coroutine_function,
    of_tasks,
    of_membership,
    of_graphs,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_what_is_told_is_kept_and_heard(play, scenario):
    play(scenario)


def test_a_handler_that_raises_is_logged_and_heard_again(caplog):
    heard = Heard(2)

    def handle(event):
        heard(event)
        raise ValueError("not this way")

    with Client(**NEAR) as client:
        client.subscribe_topic("x", handle)
        client.log_event("x", 1)
        client.log_event("x", 2)
        assert heard._all.wait(SECONDS)
    assert caplog.text.count("ValueError: not this way") == 2


def test_a_handler_of_a_blocking_client_may_use_the_client():
    answers = []
    done = threading.Event()

    with Client(**NEAR) as client:

        def handle(event):
            answers.append(client.submit(abs, event[1]).result())
            done.set()

        client.subscribe_topic("x", handle)
        client.log_event("x", -3)
        assert done.wait(SECONDS)
    assert answers == [3]


def test_code_beside_the_scheduler_tells_and_looks():
    async def scenario(client):
        heard = Heard(2)

        def tell(dask_scheduler):
            dask_scheduler.log_event("x", {"of": "it"})
            return dask_scheduler.get_events("x"), dask_scheduler.get_events("none")

        client.subscribe_topic("x", heard)
        await client.log_event("x", Mine(1))
        events, nothing = await client.run_on_scheduler(
            lambda dask_scheduler: (
                [repr(value) for _, value in tell(dask_scheduler)[0]],
                dask_scheduler.get_events("none"),
            )
        )
        await heard.wait(client)
        assert heard.values == [Mine(1), {"of": "it"}]
        assert events[0].startswith("<Opaque value of ")
        assert events[1] == "{'of': 'it'}"
        assert nothing == ()

    play_asynchronous(scenario, **NEAR)


def say(*args, **kwargs):
    """In a task."""
    shoal.print(*args, **kwargs)
    shoal.warn("take care", FutureWarning)
    return this_process()


def test_what_tasks_print_and_warn_of_appears_at_the_client(capfd):
    """Once, and not at the clients of tasks."""
    with Client(n_workers=1, threads_per_worker=1, processes=True) as client:
        client.submit(lambda: get_client().submit(abs, -1).result()).result()
        warned = Heard()
        printed = Heard()
        capfd.readouterr()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert client.submit(say, "hello", 1, sep="-", end="!\n").result() != this_process()
            client.subscribe_topic("mark", warned)
            client.log_event("mark", None)
            assert warned._all.wait(SECONDS)  # callbacks come one after another
        client.subscribe_topic("print", printed)
        client.submit(say, "mine", pure=False).result()
        assert printed._all.wait(SECONDS)
    out, _err = capfd.readouterr()
    lines = out.splitlines()
    assert lines.count("hello-1!") == 2  # the worker's own, and ours
    assert lines.count("mine") == 1  # as another handler has taken the topic
    assert [(w.category, str(w.message)) for w in caught] == [(FutureWarning, "take care")]
    assert printed.values[0]["args"] == ("mine",)


def test_what_tasks_print_in_this_very_process_appears_once(capsys):
    with Client(**NEAR) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mark = Heard()
        client.submit(say, "hello").result()
        client.subscribe_topic("mark", mark)
        client.log_event("mark", None)
        assert mark._all.wait(SECONDS)
    assert capsys.readouterr().out == "hello\n"


def test_topics_that_clients_hear_of_by_themselves_can_be_silenced(capfd):
    with Client(n_workers=1, threads_per_worker=1, processes=True) as client:
        client.unsubscribe_topic("print")
        client.unsubscribe_topic("warn")
        with pytest.raises(UnknownTopic):
            client.unsubscribe_topic("print")
        client.submit(say, "hello").result()
    out, _ = capfd.readouterr()
    assert out.splitlines().count("hello") == 1


def test_a_nanny_tells_by_its_worker():
    async def scenario():
        async with (
            Scheduler() as scheduler,
            Nanny(scheduler.address, nthreads=1, token=scheduler.token) as nanny,
            Client(scheduler.address, security=scheduler.token, asynchronous=True) as client,
        ):
            heard = Heard(2)
            client.subscribe_topic("x", heard)
            await client.get_events("x")  # it has subscribed by now
            nanny.log_event("x", {"a": 1})
            nanny.log_event(["x"], "text")
            await heard.wait(client)
            assert heard.values == [{"a": 1, "worker": nanny.worker_address}, "text"]

    asyncio.run(scenario())
