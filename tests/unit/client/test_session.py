"""A client and its scheduler talk: little is said, all is answered, and nobody waits for ever."""

import asyncio
import pickle
from concurrent.futures import CancelledError

import pytest

from shoal.client.asynchronous import AsyncClient
from shoal.client.completing import as_completed
from shoal.client.errors import UnpicklableTask
from shoal.client.future import Future, futures_of
from shoal.client.machine.invariants import check
from shoal.client.waiting import wait
from shoal.errors import DataLost, FutureCancelledError, FuturesCancelledError
from shoal.protocol.messages import CancelTasks, ReleaseTasks, SubmitTasks
from tests.unit.client.fake_scheduler import TOKEN, play, play_over_a_socket


def inc(x):
    return x + 1


def add(x, y=0):
    return x + y


def fail(x):
    raise ValueError(f"not {x}")


def leave(x):
    raise SystemExit(x)


def test_a_loop_of_submits_is_one_frame():
    async def scenario(client, scheduler):
        before = scheduler.frames
        futures = [client.submit(inc, i) for i in range(500)]
        assert await client.gather(futures) == list(range(1, 501))
        assert scheduler.frames == before + 1
        assert len(await scheduler.heard_of(SubmitTasks)) == 1

    play(scenario)


def test_dropped_futures_are_released_together_and_soon():
    async def scenario(client, scheduler):
        futures = client.map(inc, range(100))
        await client.gather(futures)
        del futures
        [release] = await scheduler.heard_of(ReleaseTasks)
        assert len(release.tasks) == 100
        assert not scheduler.values
        assert not client.session.machine.records

    play(scenario)


def test_what_is_asked_right_after_a_future_went_is_answered_as_of_before():
    async def scenario(client, scheduler):
        future, released = client.submit(inc, 1), client.submit(inc, 2)
        await client.gather([future, released])
        del future
        marker = client.submit(inc, 3)
        await marker
        assert not any(type(message) is ReleaseTasks for message in scheduler.heard)
        released.release()
        [release] = await scheduler.heard_of(ReleaseTasks)
        assert release.tasks == [2]
        [_, release] = await scheduler.heard_of(ReleaseTasks, 2)
        assert release.tasks == [1]

    play(scenario)


def test_a_future_is_released_once_however_often_it_is_asked_for():
    async def scenario(client, scheduler):
        future = client.submit(inc, 1)
        await future
        future.release()
        future.release()
        assert future.status == "finished"  # what was known of it
        del future
        marker = client.submit(inc, 2)
        await marker
        marker.release()
        releases = await scheduler.heard_of(ReleaseTasks, 1)
        assert [task for release in releases for task in release.tasks].count(1) == 1

    play(scenario)


def test_a_released_future_that_is_asked_again_wants_its_key_again():
    async def scenario(client, scheduler):
        future = client.submit(inc, 1, key="k")
        await future
        other = client.submit(inc, 1, key="k")
        future.release()
        assert await future == 2
        assert future.record is other.record
        assert set(client.futures) == {"k"}  # which takes note of what was dropped
        assert future.record.nfutures == 2

    play(scenario)


def test_inputs_are_found_at_any_depth_and_each_once():
    async def scenario(client, scheduler):
        x, y = client.submit(inc, 1), client.submit(inc, 2)
        future = client.submit(lambda a, b: (a, b), [x, {"k": (y, x)}], b={"deep": [[x]]})
        assert await future == ([2, {"k": (3, 2)}], {"deep": [[2]]})
        [message] = [m for m in await scheduler.heard_of(SubmitTasks) if m.dependencies]
        assert [sorted(needs) for needs in message.dependencies if needs] == [[1, 2]]

    play(scenario)


def test_the_error_of_a_task_is_raised_with_its_traceback():
    async def scenario(client, scheduler):
        future = client.submit(fail, 3)
        with pytest.raises(ValueError, match="not 3") as caught:
            await future
        names = [frame.name for frame in caught.traceback]
        assert "fail" in names
        assert isinstance(await future.exception(), ValueError)
        assert (await future.traceback()) is not None
        assert future.status == "error"

    play(scenario)


def test_gather_skips_what_failed_if_told_to():
    async def scenario(client, scheduler):
        futures = [client.submit(inc, 1), client.submit(fail, 2), client.submit(inc, 3)]
        assert await client.gather(futures, errors="skip") == [2, 4]
        nested = {"a": futures[1], "b": [futures[0], futures[1]]}
        assert await client.gather(nested, errors="skip") == {"a": None, "b": [2, None]}
        with pytest.raises(ValueError, match="errors is"):
            await client.gather(futures, errors="ignore")

    play(scenario)


def test_a_gather_fails_as_soon_as_one_task_does():
    async def scenario(client, scheduler):
        scheduler.holds = True
        futures = [client.submit(inc, 1), client.submit(fail, 2)]
        gathering = asyncio.ensure_future(client.gather(futures))
        await scheduler.heard_of(SubmitTasks)
        scheduler.kept.reverse()
        scheduler.let_go(1)
        with pytest.raises(ValueError, match="not 2"):
            await gathering
        assert futures[0].status == "pending"

    play(scenario)


def test_results_that_are_not_there_in_time_raise_and_can_be_waited_for_again():
    async def scenario(client, scheduler):
        scheduler.holds = True
        future = client.submit(inc, 1)
        with pytest.raises(TimeoutError):
            await future.result(timeout=0.01)
        await scheduler.heard_of(SubmitTasks)
        scheduler.let_go()
        assert await future.result(timeout="10s") == 2
        assert future.record.watchers is None

    play(scenario)


def test_equal_calls_share_a_task_and_impure_ones_do_not():
    async def scenario(client, scheduler):
        assert client.submit(inc, 1).key == client.submit(inc, 1).key
        assert client.submit(inc, 1).key != client.submit(inc, 2).key
        assert client.submit(inc, 1, pure=False).key != client.submit(inc, 1, pure=False).key
        assert client.submit(add, 1, y=2).key == client.submit(add, 1, y=2).key
        assert [f.key for f in client.map(inc, [1])] == [client.submit(inc, 1).key]
        assert client.submit(inc, 1).key.startswith("inc-")
        x = client.submit(inc, 1)
        assert client.submit(inc, x).key == client.submit(inc, x).key
        assert client.submit(inc, [x]).key == client.submit(inc, [x]).key

    play(scenario)


def test_keys_may_be_tuples_and_futures_keep_their_form():
    async def scenario(client, scheduler):
        future = client.submit(inc, 1, key=("x", 0))
        assert future.key == ("x", 0)
        assert await future == 2
        assert list(client.futures) == [("x", 0)]

    play(scenario)


def test_a_key_that_was_dropped_may_get_another_value():
    async def scenario(client, scheduler):
        first = client.submit(inc, 1, key="k")
        assert await first == 2
        del first
        assert await client.submit(inc, 10, key="k") == 11

    play(scenario)


def test_a_map_takes_keys_a_prefix_and_keywords():
    async def scenario(client, scheduler):
        futures = client.map(add, [1, 2], [10, 20], key=["p", "q"])
        assert [f.key for f in futures] == ["p", "q"]
        assert await client.gather(futures) == [11, 22]
        named = client.map(inc, [1, 2], key="mine")
        assert all(f.key.startswith("mine-") for f in named)
        shared = client.map(add, [1, 2], y=client.submit(inc, 99))
        assert await client.gather(shared) == [101, 102]
        assert await client.gather(client.map(add, [1, 2], y=5, pure=False)) == [6, 7]
        assert client.map(inc, []) == []
        with pytest.raises(ValueError, match="there are more tasks"):
            client.map(inc, [1, 2], key=["only one"])

    play(scenario)


@pytest.mark.parametrize(
    ("deed", "error"),
    [
        (lambda c: c.submit(1), TypeError),
        (lambda c: c.map(1, [2]), TypeError),
        (lambda c: c.map(inc, iter([1])), TypeError),
        (lambda c: c.submit(inc, 1, allow_other_workers=3), TypeError),
        (lambda c: c.submit(inc, 1, workers={"a": 1}), TypeError),
        (lambda c: c.submit(inc, (i for i in range(3))), UnpicklableTask),
        (lambda c: c.persist(3), TypeError),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(deed, error):
    async def scenario(client, scheduler):
        with pytest.raises(error):
            deed(client)
        assert not client.session.machine.records

    play(scenario)


def test_options_travel_and_annotations_fill_them_in():
    import dask

    async def scenario(client, scheduler):
        client.submit(inc, 1, priority=3, retries=2, workers="a")
        with dask.annotate(priority=5, workers=["b", "a"], allow_other_workers=True):
            client.submit(inc, 2)
        client.submit(inc, 3)
        given, annotated, plain = await scheduler.heard_of(SubmitTasks, 3)
        assert (given.options.priority, given.options.retries) == (3, 2)
        assert given.options.workers == ["a"]
        assert (annotated.options.priority, annotated.options.workers) == (5, ["a", "b"])
        assert annotated.options.allow_other_workers
        assert plain.options is None

    play(scenario)


def test_cancelled_futures_say_so_at_once_and_to_the_scheduler():
    async def scenario(client, scheduler):
        scheduler.holds = True
        future = client.submit(inc, 1)
        waiting = asyncio.ensure_future(client.gather([future]))
        await scheduler.heard_of(SubmitTasks)
        await future.cancel(reason="enough", msg="of it")
        assert future.cancelled()
        with pytest.raises(FutureCancelledError, match=r"enough\. of it"):
            await waiting
        [message] = await scheduler.heard_of(CancelTasks)
        assert message.reason == "enough\nof it"
        with pytest.raises(CancelledError):
            client.futures_of([future])

    play(scenario)


def test_a_pickled_future_finds_the_client_of_its_context():
    async def scenario(client, scheduler):
        future = client.submit(inc, 1)
        assert await future == 2
        again = pickle.loads(pickle.dumps(future))
        assert again.key == future.key
        assert again.client is None  # this one is no default, and not the context's
        with client.as_current():
            assert await again == 2
            assert again.record is future.record

    play(scenario)


def test_a_future_without_a_client_says_so():
    future = Future("x")
    assert future.status is None
    with pytest.raises(RuntimeError, match="not properly initialized"):
        future.result()
    assert "x" in repr(future)


def test_a_key_known_by_name_gives_its_result():
    async def scenario(client, scheduler):
        held = client.submit(inc, 1, key="named")
        await held
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            assert await Future("named", other) == 2

    play(scenario)


def test_graphs_are_computed_with_nested_keys_and_without_what_nobody_needs():
    async def scenario(client, scheduler):
        graph = {"a": 1, "b": (inc, "a"), ("c", 0): (add, "a", "b"), "unused": (fail, "a")}
        assert await client.get(graph, [["b", ("c", 0)], "a"]) == [[2, 3], 1]
        assert "unused" not in scheduler.numbers
        assert await client.get(graph, "b") == 2
        futures = client.get(graph, ["b"], sync=False)
        assert await futures[0] == 2

    play(scenario)


def test_futures_inside_graphs_are_inputs():
    async def scenario(client, scheduler):
        x = client.submit(inc, 1)
        assert await client.get({"y": (inc, x), "z": (sum, [x, "y"])}, ["y", "z"]) == [3, 5]

    play(scenario)


def test_what_a_graph_needs_and_somebody_wants_already_is_not_sent_again():
    async def scenario(client, scheduler):
        x = client.submit(inc, 1, key="x")
        await x
        nheard = len(await scheduler.heard_of(SubmitTasks))
        assert await client.get({"x": (fail, 1), "y": (inc, "x")}, ["x", "y"]) == [2, 3]
        sent = (await scheduler.heard_of(SubmitTasks, nheard + 1))[nheard:]
        assert [key for message in sent for key in message.keys] == ["y"]

    play(scenario)


def test_a_graph_that_can_not_be_sent_leaves_nothing_wanted():
    async def scenario(client, scheduler):
        n = 6000  # so that some of it has left before the bad task is found
        graph = {f"k{i}": (inc, i) for i in range(n)}
        graph["bad"] = (inc, (i for i in range(3)))
        graph["all"] = (sum, [*(f"k{i}" for i in range(n)), "bad"])
        with pytest.raises(UnpicklableTask, match="'bad'"):
            client.get(graph, ["all", "k0"])
        [*_, last] = await scheduler.heard_of(SubmitTasks, 2)
        assert last.keys == []
        assert last.ntasks_ahead == 0
        await client.gather(client.submit(inc, -1))
        assert not [key for key in client.futures if str(key).startswith("k")]
        assert list(check(client.session.machine)) == []

    play(scenario)


def test_collections_are_computed_and_persisted():
    import dask
    import dask.array as da

    async def scenario(client, scheduler):
        x = da.ones((10, 10), chunks=5)
        assert await client.compute(x.sum()) == 100
        assert await client.compute(x.sum(), sync=True) == 100
        many = client.compute([x.sum(), 3, dask.delayed(inc)(1)])
        assert [await many[0], many[1], await many[2]] == [100, 3, 2]
        kept = client.persist(x + 1)
        assert len(futures_of(kept)) == 4
        assert await client.compute(kept.sum()) == 200
        assert await client.compute({"a": x.sum()}) == {"a": 100}

    play(scenario)


def test_callbacks_are_called_off_the_loop_and_their_errors_only_logged(caplog):
    import threading

    async def scenario(client, scheduler):
        called = asyncio.get_running_loop().create_future()

        def tell(future):
            loop.call_soon_threadsafe(called.set_result, (future, threading.current_thread()))

        loop = asyncio.get_running_loop()
        future = client.submit(inc, 1)
        future.add_done_callback(lambda future: fail("this"))
        future.add_done_callback(tell)
        which, thread = await asyncio.wait_for(called, 10)
        assert which is future
        assert thread is not threading.current_thread()
        assert "not this" in caplog.text

    play(scenario)


def test_what_can_not_be_sent_fails_and_the_rest_is_sent():
    async def scenario(client, scheduler):
        fine = client.submit(inc, 1)
        bad = client.submit(inc, 2, workers="lone \ud800 surrogate")
        also_fine = client.submit(inc, 3, priority=1)
        with pytest.raises(UnicodeEncodeError):
            await bad
        assert await client.gather([fine, also_fine, client.submit(inc, 5)]) == [2, 4, 6]

    play_over_a_socket(scenario)


def lose(key):
    raise DataLost(key, "tcp://gone:1")


def test_what_was_lost_for_good_counts_as_cancelled_and_says_what_it_was():
    async def scenario(client, scheduler):
        lost, fine = client.submit(lose, "x"), client.submit(inc, 1)
        with pytest.raises(DataLost, match="tcp://gone:1"):
            await lost
        assert (lost.status, lost.cancelled(), lost.done()) == ("cancelled", True, True)
        with pytest.raises(FuturesCancelledError, match="lost dependencies"):
            await wait([lost, fine])
        assert await client.gather([lost, fine], errors="skip") == [2]
        async for future, outcome in as_completed([lost], with_results=True):
            assert future is lost  # as for cancelled ones, its error is given
            assert isinstance(outcome, DataLost)

    play(scenario)


def test_an_error_of_a_task_that_is_only_called_like_ours_is_an_error():
    own = type("DataLost", (Exception,), {"__module__": __name__})

    def raise_own():
        raise own("of mine")

    async def scenario(client, scheduler):
        future = client.submit(raise_own)
        with pytest.raises(Exception, match="of mine"):
            await future
        assert (future.status, future.cancelled()) == ("error", False)

    play(scenario)
