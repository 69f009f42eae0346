"""A client as an executor: what takes executors of the standard library takes this one."""

import asyncio
import concurrent.futures
import threading
from typing import ClassVar

import pytest

from shoal import Client, get_worker
from shoal.client.executor import ClientExecutor
from tests.cluster.conftest import SMALL


@pytest.fixture(scope="module")
def client():
    with Client(processes=False, **SMALL) as client:
        yield client


@pytest.fixture
def executor(client):
    with client.get_executor(pure=False) as executor:
        yield executor


def inc(x):
    return x + 1


def fail(x):
    raise ValueError(f"not {x}")


def held(gate):
    gate.wait(10)


class Gate:
    """An event of this process, found by its number wherever it is sent within it."""

    gates: ClassVar[list[threading.Event]] = []

    def __init__(self):
        self.number = len(self.gates)
        self.gates.append(threading.Event())

    def open(self):
        self.gates[self.number].set()

    def wait(self, seconds):
        assert self.gates[self.number].wait(seconds)

    def __reduce__(self):
        return _gate, (self.number,)


def _gate(number):
    gate = object.__new__(Gate)
    gate.number = number
    return gate


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


def test_its_futures_are_those_of_the_standard_library(executor):
    futures = [executor.submit(inc, n) for n in range(3)]
    assert {type(future).__mro__[1] for future in futures} == {concurrent.futures.Future}
    done, not_done = concurrent.futures.wait(futures, 10)
    assert [future.result() for future in futures] == [1, 2, 3]
    assert done == set(futures)
    assert not not_done
    assert set(concurrent.futures.as_completed(futures, 10)) == done
    assert isinstance(executor, concurrent.futures.Executor)


def test_what_a_call_raises_is_its_futures_exception(executor):
    future = executor.submit(fail, 1)
    assert isinstance(future.exception(10), ValueError)
    with pytest.raises(ValueError, match="not 1"):
        future.result()


def test_large_results_are_fetched(executor):
    futures = [executor.submit(bytes, 100_000 + n) for n in range(5)]
    assert [len(future.result(10)) for future in futures] == [100_000 + n for n in range(5)]


def test_a_result_that_cannot_be_read_is_the_futures_exception(executor):
    future = executor.submit(Unreadable)
    with pytest.raises(LookupError, match="can't be read"):
        future.result(10)


class Unreadable:
    def __init__(self):
        self.content = 1

    def __reduce__(self):
        return _refuse, ()


def _refuse():
    raise LookupError("it can't be read")


def test_callbacks_are_called_in_their_order_and_may_wait_for_other_futures(executor):
    seen = []
    called = threading.Event()
    other = executor.submit(inc, 10)
    future = executor.submit(inc, 1)
    future.add_done_callback(lambda done: seen.append((done.result(), other.result(10))))
    future.add_done_callback(lambda done: called.set())
    assert called.wait(10)
    assert seen == [(2, 11)]


def test_keywords_of_the_function_and_of_submit_are_told_apart(executor):
    def described(*, key, retries=0):
        return key, retries

    assert executor.submit(described, key=1, retries=2).result(10) == (1, 2)
    future = executor.submit(inc, 1, key="named")
    assert (future.key, future.result(10)) == ("named", 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        executor.submit(inc, 1, y=2).result(10)
    with pytest.raises(TypeError):
        executor.submit(1)


def test_a_future_can_be_cancelled_until_its_result_is_here(client, gate):
    with client.get_executor() as executor:
        running = executor.submit(held, gate)
        waiting = executor.submit(inc, running.key)
        assert waiting.cancel()
        assert waiting.cancelled()
        assert waiting.done()
        with pytest.raises(concurrent.futures.CancelledError):
            waiting.result()
        gate.open()
        running.result(10)
        assert not running.cancel()


def test_a_task_that_was_cancelled_elsewhere_cancels_the_future(client, gate):
    executor = client.get_executor()
    future = executor.submit(held, gate, key="elsewhere")
    client.cancel("elsewhere")
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(10)
    executor.shutdown()


def test_equal_calls_are_one_unless_they_are_not_pure(client):
    with client.get_executor() as executor:
        assert executor.submit(inc, 1).key == executor.submit(inc, 1).key
    with client.get_executor(pure=False) as executor:
        assert executor.submit(inc, 1).key != executor.submit(inc, 1).key


def test_options_hold_for_all_calls(client):
    address = sorted(client.nthreads())[1]
    with client.get_executor(workers=[address], retries=1, pure=False) as executor:
        found = executor.map(lambda _: get_worker().address, range(10))
        assert set(found) == {address}
        assert executor.submit(lambda: get_worker().address).result(10) == address
    with pytest.raises(TypeError, match=r"unsupported arguments to ClientExecutor: \['x'\]"):
        client.get_executor(x=1)


def test_map_gives_results_in_order_of_any_iterables(executor):
    assert list(executor.map(pow, iter([2, 3, 4]), range(2, 9))) == [4, 27, 256]
    assert list(executor.map(inc, [])) == []
    assert list(executor.map(inc, range(5), chunksize=3)) == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="chunksize"):
        executor.map(inc, [1], chunksize=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'extra'"):
        executor.map(inc, [1], extra=1)
    results = executor.map(fail, [1, 2])
    with pytest.raises(ValueError, match="not 1"):
        next(results)


def test_a_map_with_a_buffer_reads_no_further_ahead(executor):
    read = []

    def items():
        for n in range(10):
            read.append(n)
            yield n

    results = executor.map(inc, items(), buffersize=3)
    assert len(read) == 3
    assert next(results) == 1
    assert len(read) == 4
    assert list(results) == list(range(2, 11))
    for wrong, kind in ((0, ValueError), ("3", TypeError)):
        with pytest.raises(kind, match="buffersize"):
            executor.map(inc, [1], buffersize=wrong)


def test_a_map_that_takes_too_long_cancels_the_rest(client, gate):
    executor = client.get_executor()
    results = executor.map(held, [gate, gate], timeout=0.05)
    with pytest.raises(TimeoutError):
        next(results)
    executor.shutdown()  # waits for nothing: what had not ended is cancelled
    assert "0 futures have not ended" in repr(executor)


def test_whoever_leaves_a_map_cancels_the_rest(client, gate):
    executor = client.get_executor(pure=False)
    results = executor.map(lambda n: n or held(gate), [1, 0, 0, 0])
    assert next(results) == 1
    results.close()
    executor.shutdown()  # waits for nothing: what had not ended is cancelled
    assert "0 futures have not ended" in repr(executor)


def test_a_map_of_which_nobody_takes_results_runs_all_the_same(client):
    ran = Gate()
    with client.get_executor() as executor:
        executor.map(lambda gate: gate.open(), [ran])
    ran.wait(0)


def test_a_call_whose_future_is_dropped_runs_all_the_same(client):
    ran = Gate()
    with client.get_executor() as executor:
        executor.submit(ran.open)
    ran.wait(0)


def test_after_its_end_it_takes_nothing(client):
    executor = client.get_executor()
    future = executor.submit(inc, 1)
    executor.shutdown()
    assert future.done()
    executor.shutdown()
    for submit in (lambda: executor.submit(inc, 1), lambda: executor.map(inc, [1])):
        with pytest.raises(RuntimeError, match="after shutdown"):
            submit()


def test_an_end_without_waiting_cancels_unless_it_shall_not(client, gate):
    executor = client.get_executor(pure=False)
    future = executor.submit(held, gate)
    executor.shutdown(wait=False)
    assert future.cancelled()
    gate.open()

    executor = client.get_executor(pure=False)
    slow = Gate()
    future = executor.submit(held, slow)
    executor.shutdown(wait=False, cancel_futures=False)
    assert not future.cancelled()
    slow.open()
    future.result(10)

    executor = client.get_executor(pure=False)
    slow = Gate()
    future = executor.submit(held, slow)
    executor.shutdown(cancel_futures=True)
    assert future.cancelled()
    slow.open()


def test_a_client_that_closes_cancels_the_futures_of_its_executors(gate):
    with Client(processes=False, **SMALL) as client:
        executor = client.get_executor()
        futures = [executor.submit(held, gate), *[executor.submit(inc, n) for n in range(3)]]
        for future in futures[1:]:
            future.result(10)
        gate_of_waiter = []
        waiter = threading.Thread(target=lambda: gate_of_waiter.append(executor.shutdown()))
        waiter.start()
        client.close()
        waiter.join(10)
        assert gate_of_waiter == [None]
        assert futures[0].cancelled()
        gate.open()


def test_a_loop_runs_calls_in_it_with_an_asynchronous_client():
    async def play():
        async with Client(asynchronous=True, processes=False, **SMALL) as client:
            executor = client.get_executor()
            loop = asyncio.get_running_loop()
            assert await loop.run_in_executor(executor, inc, 1) == 2
            future = executor.submit(inc, 2)
            assert await asyncio.wrap_future(future) == 3
            assert await asyncio.to_thread(lambda: list(executor.map(inc, [1, 2]))) == [2, 3]
            with pytest.raises(RuntimeError, match="would wait for the event loop"):
                next(executor.map(inc, [3]))
            with pytest.raises(ValueError, match="not 4"):
                await loop.run_in_executor(executor, fail, 4)
            executor.shutdown()

    asyncio.run(play())


def test_a_burst_of_calls_is_answered_call_by_call(executor):
    futures = [executor.submit(inc, n) for n in range(1000)]
    assert [future.result(30) for future in futures] == list(range(1, 1001))


def test_it_can_be_made_of_a_client_with_the_options_of_submit(client):
    with ClientExecutor(client, pure=True) as executor:
        assert executor.submit(inc, 1).key == executor.submit(inc, 1).key
        assert executor.submit(inc, 1).result(10) == 2
    with pytest.raises(TypeError, match="unsupported arguments"):
        ClientExecutor(client, key="x")
