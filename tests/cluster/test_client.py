"""What people do with a client, through both faces, on a cluster in this process."""

import operator
import threading
from concurrent.futures import CancelledError

import pytest

from shoal import Client, as_completed, wait
from shoal.client.errors import TakenKeyWarning
from tests.cluster.faces import ask


def inc(x):
    return x + 1


def fail(x):
    raise ValueError(f"not {x}")


def test_a_submitted_call_gives_its_result(play):
    async def scenario(client):
        future = client.submit(inc, 1)
        assert await ask(future.result()) == 2
        assert future.done()
        assert future.status == "finished"
        assert future.type is int

    play(scenario)


def test_futures_in_arguments_are_results_at_any_depth(play):
    async def scenario(client):
        x = client.submit(inc, 1)
        y = client.submit(lambda parts: parts["a"][0] + parts["b"], {"a": [x, 5], "b": 10})
        z = client.submit(operator.add, x, x)
        assert await ask(y.result()) == 12
        assert await ask(z.result()) == 4

    play(scenario)


def test_a_map_of_many_gives_all_results_in_order(play):
    async def scenario(client):
        futures = client.map(inc, range(2_000))
        assert await ask(client.gather(futures)) == list(range(1, 2_001))

    play(scenario)


def test_map_takes_several_iterables_and_keywords(play):
    async def scenario(client):
        futures = client.map(lambda a, b, c=0: a + b + c, [1, 2], [10, 20], c=100)
        assert await ask(client.gather(futures)) == [111, 122]

    play(scenario)


def test_gather_keeps_the_nesting_of_what_it_is_given(play):
    async def scenario(client):
        x, y = client.map(inc, [1, 2])
        assert await ask(client.gather({"a": [x, (y, 5)]})) == {"a": [2, (3, 5)]}

    play(scenario)


def test_an_error_is_raised_with_its_own_type_and_the_remote_line(play):
    async def scenario(client):
        future = client.submit(fail, 3)
        with pytest.raises(ValueError, match="not 3") as caught:
            await ask(future.result())
        names = [frame.name for frame in caught.traceback]
        assert "fail" in names
        assert future.status == "error"
        assert isinstance(await ask(future.exception()), ValueError)

    play(scenario)


def test_an_error_travels_to_what_depends_on_it_and_nowhere_else(play):
    async def scenario(client):
        bad = client.submit(fail, 1)
        dependent = client.submit(inc, bad)
        fine = client.submit(inc, 1)
        with pytest.raises(ValueError, match="not 1"):
            await ask(dependent.result())
        assert await ask(fine.result()) == 2
        assert await ask(client.gather([fine, bad], errors="skip")) == [2]

    play(scenario)


def test_retries_run_a_failing_task_again(play, tmp_path):
    marks = tmp_path / "marks"

    def fail_twice():
        with marks.open("a") as file:
            file.write("x")
        if marks.stat().st_size < 3:
            raise OSError("not yet")
        return marks.stat().st_size

    async def scenario(client):
        assert await ask(client.submit(fail_twice, retries=2).result()) == 3

    play(scenario)


def test_pure_calls_share_a_key_and_impure_ones_do_not(play):
    async def scenario(client):
        assert client.submit(inc, 1).key == client.submit(inc, 1).key
        assert client.submit(inc, 1).key != client.submit(inc, 2).key
        one, other = client.submit(inc, 1, pure=False), client.submit(inc, 1, pure=False)
        assert one.key != other.key
        await ask(client.gather([one, other]))

    play(scenario)


def test_a_key_may_be_chosen_and_is_what_the_cluster_calls_it(play):
    async def scenario(client):
        future = client.submit(inc, 1, key="chosen")
        await ask(wait(future))
        assert future.key == "chosen"
        assert list(await ask(client.who_has([future]))) == ["chosen"]

    play(scenario)


def test_plain_graphs_of_tuples_run(play):
    async def scenario(client):
        graph = {"x": 1, "y": (inc, "x"), ("z", 0): (operator.add, "y", 10), "w": (sum, ["x", "y"])}
        assert await ask(client.get(graph, [("z", 0), ["w", "x"]])) == [12, [3, 1]]

    play(scenario)


def test_scattered_values_are_arguments_like_any_other(play):
    async def scenario(client):
        x = await ask(client.scatter([1, 2, 3]))
        assert await ask(client.gather(x)) == [1, 2, 3]
        assert await ask(client.submit(sum, x).result()) == 6
        named = await ask(client.scatter({"a": 10}))
        assert await ask(named["a"].result()) == 10

    play(scenario)


def test_scatter_goes_round_the_workers_and_broadcast_to_all(play):
    async def scenario(client):
        parts = await ask(client.scatter([bytes([i]) * 5_000 for i in range(4)]))
        held = await ask(client.has_what())
        assert sorted(len(keys) for keys in held.values()) == [2, 2]
        everywhere = await ask(client.scatter(b"y" * 5_000, broadcast=True))
        holders = await ask(client.who_has([everywhere]))
        assert len(holders[everywhere.key]) == 2
        del parts

    play(scenario)


def test_a_released_result_leaves_the_cluster(play):
    async def scenario(client):
        future = client.submit(inc, 1, key="passing")
        await ask(future.result())
        future.release()
        gone = await ask(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
        assert gone == 0

    play(scenario)


def test_a_cancelled_future_says_so(play):
    async def scenario(client):
        blocked = client.submit(inc, 1, workers=["nobody"], key="never")
        await ask(client.cancel(blocked))
        assert blocked.cancelled()
        with pytest.raises(CancelledError):
            await ask(blocked.result())

    play(scenario)


def test_restricted_tasks_run_where_they_may(play):
    async def scenario(client):
        first, second = await ask(client.nthreads())
        x = client.submit(inc, 1, workers=[second], key="x")
        y = client.submit(inc, 2, workers=first, key="y")
        await ask(wait([x, y]))
        holders = await ask(client.who_has([x, y]))
        assert holders == {"x": (second,), "y": (first,)} or holders == {
            "x": [second],
            "y": [first],
        }

    play(scenario)


def test_functions_run_on_every_worker_and_on_the_scheduler(play):
    async def scenario(client):
        answers = await ask(client.run(lambda dask_worker: dask_worker.address))
        assert {address: address for address in answers} == answers
        assert len(answers) == 2
        state = await ask(
            client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.workers))
        )
        assert state == 2
        with pytest.raises(ZeroDivisionError):
            await ask(client.run(lambda: 1 / 0))

    play(scenario)


def test_the_cluster_tells_about_itself(play):
    async def scenario(client):
        await ask(client.wait_for_workers(2))
        facts = await ask(client.scheduler_info())
        assert len(facts["workers"]) == 2
        assert sum((await ask(client.nthreads())).values()) == 2

    play(scenario)


def test_wait_tells_done_from_not_done(play):
    async def scenario(client):
        fast = client.submit(inc, 1)
        never = client.submit(inc, 2, workers=["nobody"])
        done, not_done = await ask(wait([fast, never], return_when="FIRST_COMPLETED"))
        assert done == {fast}
        assert not_done == {never}
        with pytest.raises(TimeoutError):
            await ask(wait(never, timeout=0.05))

    play(scenario)


def test_as_completed_yields_each_future_once_with_its_result(play):
    async def scenario(client):
        futures = client.map(inc, range(20))
        seen = []
        completed = as_completed(futures, with_results=True)
        while not completed.is_empty():
            future, result = await ask(
                completed.__anext__() if client.asynchronous else completed.next()
            )
            seen.append((future.key, result))
        assert sorted(result for _, result in seen) == list(range(1, 21))
        assert len({key for key, _ in seen}) == 20

    play(scenario)


def test_callbacks_are_called_with_the_future(play):
    async def scenario(client):
        calls = []
        future = client.submit(inc, 1)
        await ask(future.result())
        future.add_done_callback(calls.append)
        await ask(client.submit(inc, 2).result())
        await ask(client.run_on_scheduler(lambda: None))
        for _ in range(1_000):
            if calls:
                break
            await ask(client.run_on_scheduler(lambda: None))
        assert calls == [future]

    play(scenario)


gate = threading.Event()
order: list[str] = []


def pass_gate():
    assert gate.wait(30)


def note(name):
    order.append(name)


def test_the_more_urgent_of_waiting_tasks_starts_first(play):
    gate.clear()
    order.clear()

    async def scenario(client):
        address, _ = await ask(client.nthreads())
        pinned = {"workers": [address], "pure": False}
        blockers = [client.submit(pass_gate, **pinned) for _ in range(3)]  # all slots
        late = [client.submit(note, "late", priority=-1, **pinned) for _ in range(3)]
        soon = [client.submit(note, "soon", priority=1, **pinned) for _ in range(3)]
        await ask(client.run_on_scheduler(lambda: None))  # all of them have arrived
        gate.set()
        await ask(wait([*blockers, *late, *soon]))

    play(scenario)
    assert order == ["soon"] * 3 + ["late"] * 3


def test_the_first_run_spec_of_a_key_wins(play):
    async def scenario(client):
        future = client.submit(inc, 41, key="shared")
        await ask(future.result())
        with pytest.warns(TakenKeyWarning, match="another call"):
            again = client.submit(fail, 0, key="shared")
        assert await ask(again.result()) == 42

    play(scenario)


def test_a_closed_client_says_so_whatever_it_is_asked():
    with Client(n_workers=1, processes=False, dashboard_address=None) as client:
        pass
    for question in (client.nthreads, client.scheduler_info, lambda: client.run(inc, 1)):
        with pytest.raises(RuntimeError, match="closed, so it can't do this"):
            question()


def test_keys_of_a_map_that_would_share_a_result_are_refused(play):
    async def scenario(client):
        with pytest.raises(ValueError, match="'d' more than once"):
            client.map(inc, [1, 2], key=["d", "d"])
        assert await ask(client.gather(client.map(inc, [1, 2], key=["d", "e"]))) == [2, 3]

    play(scenario)
