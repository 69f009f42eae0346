"""Proxies and futures of actors' calls, with nobody to call."""

import asyncio
import pickle
import threading
from types import SimpleNamespace

import dask
import pytest
from dask._task_spec import DataNode, Task, TaskRef

from shoal.client.actors import Actor, ActorFuture, BaseActorFuture, EagerActorFuture, errors
from shoal.client.actors.calling import Call, ClientWay, WorkerWay
from shoal.client.actors.making import Maker, who_are_actors, with_actors
from shoal.client.errors import BlockingCall, ClientClosed
from shoal.client.finding import Tasks
from shoal.client.session import Session
from shoal.client.standins import calls_in
from shoal.errors import ActorLost, ActorReleased, NoSuchActor
from shoal.ids import Key, RunId
from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import TaskOptions


class Thing:
    """Something to be an actor."""

    size: int
    _inner: int

    def go(self):
        """Go."""


def proxy() -> Actor:
    return Actor(Thing, "tcp://127.0.0.1:1", "thing-1")


@pytest.mark.parametrize(
    "error",
    [
        errors.AttributeStays("n", "Thing"),
        errors.NoActorAttribute("n", "Thing"),
        errors.CallStays("go-1"),
        errors.NobodyCalls("thing-1"),
        errors.ActorSilent("go-1", 0.5),
        errors.CallCutShort("thing-1", "tcp://a:1", "it was reset."),
        errors.CallerGone("thing-1"),
        errors.CallerGone("thing-1", "it was closed."),
        ActorLost("thing-1", "tcp://a:1", "it died."),
        ActorReleased("thing-1", "", ""),
        NoSuchActor("thing-1", "tcp://a:1"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_and_say_what_to_do(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert ".." not in str(error)
    assert len(str(error)) > 40


def test_a_proxy_travels_and_is_equal_to_its_copy():
    mine = Actor.of_run(Thing, "tcp://127.0.0.1:1", "thing-1", 7)
    again = pickle.loads(pickle.dumps(mine))
    assert (again, hash(again), again._run) == (mine, hash(mine), 7)
    assert again != Actor(Thing, "tcp://127.0.0.1:2", "thing-1")
    assert repr(again) == "<Actor: Thing, key=thing-1>"
    assert isinstance(again, TaskRef)
    assert dask.tokenize.tokenize(again) == dask.tokenize.tokenize(mine)


def test_a_proxy_shows_what_its_class_names_and_nothing_else():
    mine = proxy()
    assert {"go", "size"} <= set(dir(mine))
    assert not {"_inner", "__init_subclass_"} & set(dir(mine))
    assert mine.go.__name__ == "go"
    assert mine.go.__doc__ == "Go."
    for name in ("none", "_inner", "__len__"):
        assert not hasattr(mine, name)
    with pytest.raises(errors.AttributeStays):
        mine.size = 1


def test_without_a_client_nobody_can_be_called():
    with pytest.raises(errors.NobodyCalls, match="Connect a client first"):
        proxy().go()
    with pytest.raises(errors.NobodyCalls):
        proxy().size  # noqa: B018 -- it is read on the other side


def test_a_future_of_a_call_gives_its_result_again_and_again():
    future = ActorFuture("go-1", None)
    assert (future.status, future.done(), future.cancelled()) == ("pending", False, False)
    threading.Thread(target=future.end, args=(3,)).start()
    assert [future.result(timeout=10), future.result(), future.exception()] == [3, 3, None]
    future.end(4)  # the first end is the end
    assert future.result() == 3
    assert repr(future) == "<ActorFuture: finished, key: go-1>"
    with pytest.raises(errors.CallStays, match="Pass it to submit"):
        pickle.dumps(future)


def test_a_call_by_way_of_a_loop_that_has_ended_says_so_at_once():
    loop = asyncio.new_event_loop()
    loop.close()
    call = Call(None, "go", b"", [], key=Key("thing-1"), run=RunId(0))
    future = WorkerWay(
        SimpleNamespace(loop=loop, feed=SimpleNamespace(spawn=None)), "tcp://a:1"
    ).begin(call, "go-1")
    with pytest.raises(errors.CallerGone, match="Event loop is closed"):
        future.result(timeout=10)


def test_a_call_that_its_loop_never_came_to_ends_with_the_client():
    """The loop of the last client stops, and what it was handed just before is never called."""

    class Stopped:
        def call_soon_threadsafe(self, function):
            """Nobody will."""

    session = Session("a")
    session.status, session.loop = "running", Stopped()
    way = ClientWay(SimpleNamespace(session=session), "tcp://a:1")
    calls = [Call(None, "go", b"", [], key=Key("thing-1"), run=RunId(0)) for _ in range(2)]
    futures = [way.begin(call, "go-1") for call in calls]
    assert not any(future.done() for future in futures)
    session.status = "closing"
    (close,) = session.closers
    asyncio.run(close())
    for future in futures:
        with pytest.raises(ClientClosed):
            future.result(timeout=0)
    with pytest.raises(ClientClosed):
        way.begin(calls[0], "go-1")


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_call_that_is_given_up_with_its_caller_says_so(has_begun):
    async def play():
        tasks = []

        async def never(*_):
            await asyncio.Event().wait()

        def spawn(work):
            tasks.append(asyncio.ensure_future(work))
            return tasks[0]

        exchange = SimpleNamespace(ask=never)
        feed = SimpleNamespace(spawn=spawn, exchange=exchange)
        worker = SimpleNamespace(loop=asyncio.get_running_loop(), feed=feed)
        call = Call(None, "go", b"", [], key=Key("thing-1"), run=RunId(0))
        future = WorkerWay(worker, "tcp://a:1").begin(call, "go-1")
        if has_begun:
            await asyncio.sleep(0)
        tasks[0].cancel()
        with pytest.raises(errors.CallerGone, match="was given up"):
            await asyncio.wait_for(future, 10)

    asyncio.run(play())


def test_each_time_it_raises_it_raises_another_error():
    future = ActorFuture("go-1", None)
    future.end(error=to_failure(KeyError("no")))
    raised = []
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            future.result()
        raised.append(caught.value)
    assert raised[0] is not raised[1]
    assert future.status == "error"


def test_one_that_is_late_says_how_long_it_was_waited_for():
    future = ActorFuture("go-1", None)
    for timeout in ("1ms", 0.015):
        with pytest.raises(
            errors.ActorSilent, match=f"within {0.015 if timeout == 0.015 else 0.001}"
        ):
            future.result(timeout)


def test_several_may_await_it_and_one_that_stops_takes_nothing_from_the_others():
    async def play():
        future = ActorFuture("go-1", asyncio.get_running_loop())
        with pytest.raises(BlockingCall):
            future.result()

        async def wait():
            return await future

        first, second, third = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        future.end(5)
        assert await asyncio.gather(second, third) == [5, 5]
        assert first.cancelled()
        assert await future == 5
        assert future.result() == 5

    asyncio.run(play())


def test_callbacks_are_called_whether_it_has_ended_or_not():
    future, called = ActorFuture("go-1", None), []
    both = threading.Event()

    def note(ended):
        called.append(ended)
        if len(called) == 2:
            both.set()

    future.add_done_callback(note)
    future.end(1)
    future.add_done_callback(note)
    assert both.wait(10)
    assert called == [future, future]


def test_an_eager_future_has_ended():
    done, failed = EagerActorFuture(3), EagerActorFuture(error=ValueError("no"))
    assert isinstance(done, BaseActorFuture)
    assert (done.result(timeout=0), done.exception(), done.done(), done.status) == (
        3,
        None,
        True,
        "finished",
    )
    assert failed.status == "error"
    with pytest.raises(ValueError, match="no"):
        failed.result()

    async def play():
        return await done

    assert asyncio.run(play()) == 3


def test_calls_are_found_in_containers_once_each():
    one, other = ActorFuture("a", None), EagerActorFuture(1)
    assert calls_in([one, {"x": (other, one)}, {one}, "text"]) == [one, other]


def test_which_tasks_are_actors_can_be_said_in_many_ways():
    thing = dask.delayed(Thing)()
    assert who_are_actors(None) is False
    assert who_are_actors(True) is True
    for said in (thing, [thing], thing.key, [thing.key], {thing.key: True, "other": False}):
        assert who_are_actors(said) == frozenset([thing.key])


def test_tasks_of_a_graph_make_actors_and_are_not_fused_with_others():
    tasks = {
        "n": DataNode("n", 3),
        "x": Task("x", Thing),
        "y": Task("y", len, TaskRef("x")),
    }
    base = TaskOptions(priority=2.0)
    graph = with_actors(Tasks(tasks, fusible=("x", "y")), frozenset(["x", "n"]), base)
    assert graph.options_by_key == {"x": TaskOptions(priority=2.0, actor=True)}
    assert list(graph.fusible) == ["y"]
    assert graph.by_key["y"] is tasks["y"]
    again = pickle.loads(pickle.dumps(graph.by_key["x"]))
    assert again.dependencies == frozenset()
    everything = with_actors(Tasks(tasks), True, base)
    assert set(everything.options_by_key) == {"x", "y"}  # what calls nothing is no actor


def test_a_maker_travels_with_what_it_makes():
    assert pickle.loads(pickle.dumps(Maker(Thing))).make is Thing
