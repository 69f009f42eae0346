"""The blocking client, and the thread that it waits for."""

import asyncio
import gc
import signal
import threading
import weakref
from concurrent.futures import CancelledError

import pytest

from shoal.client.asynchronous import AsyncClient
from shoal.client.blocking import CALLBACKS, Latch, LoopThread
from shoal.client.client import Client
from shoal.client.completing import as_completed
from shoal.client.control.calls import MAP_SLICE_TASKS
from shoal.client.errors import BlockingCall, ClientClosed, NoClient
from shoal.client.waiting import wait
from shoal.protocol.messages import ReleaseTasks, SubmitTasks, TaskInMemory
from tests.programs import ROOT, printed_by
from tests.unit.client.fake_scheduler import TOKEN, FakeScheduler
from tests.unit.client.fake_worker import FakeWorker


def inc(x):
    return x + 1


def fail(x):
    raise ValueError(f"not {x}")


def leave(x):
    raise SystemExit(x)


@pytest.fixture
def thread():
    thread = LoopThread.acquire()
    yield thread
    thread.release()


@pytest.fixture
def scheduler(thread):
    scheduler = FakeScheduler()
    thread.run(scheduler.__aenter__())
    yield scheduler
    thread.run(scheduler.__aexit__())


@pytest.fixture
def client(scheduler):
    with Client(scheduler.address, security=TOKEN, set_as_default=False) as client:
        yield client


def test_all_who_ask_share_one_thread_and_the_last_one_ends_it():
    first, second = LoopThread.acquire(), LoopThread.acquire()
    assert first is second
    assert [t.name for t in threading.enumerate()].count("shoal-client-loop") == 1
    first.release()
    assert second.run(asyncio.sleep(0, "alive")) == "alive"
    second.release()
    assert not second.is_alive
    third = LoopThread.acquire()
    assert third is not second
    third.release()


def test_waiting_for_oneself_is_refused_with_advice(thread):
    async def wait_for_myself():
        return thread.run(asyncio.sleep(0))

    with pytest.raises(BlockingCall, match="asynchronous"):
        thread.run(wait_for_myself())


@pytest.mark.filterwarnings("error")
def test_work_for_a_loop_that_has_ended_is_refused_without_a_rest(recwarn):
    thread = LoopThread.acquire()
    thread.release()

    async def work():
        return 1

    with pytest.raises(RuntimeError, match="closed"):
        thread.run(work())
    gc.collect()
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def test_a_callback_that_exits_does_not_silence_the_others(client):
    called = threading.Event()
    client.submit(inc, 1).add_done_callback(leave)
    client.submit(inc, 2).add_done_callback(lambda future: called.set())
    assert called.wait(10)
    called.clear()
    client.submit(inc, 3).add_done_callback(lambda future: called.set())
    assert called.wait(10)


def test_work_that_takes_too_long_is_cancelled(thread):
    cancelled = threading.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        thread.run(work(), 0.01)
    assert cancelled.wait(10)


def test_an_exit_inside_the_work_is_raised_to_the_caller_and_the_loop_lives(thread):
    async def work():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        thread.run(work())
    assert thread.run(asyncio.sleep(0, "alive")) == "alive"


def test_a_latch_opens_when_all_it_counts_have_ended():
    latch = Latch()
    assert not latch.wait(0)
    latch(None)
    assert latch.wait(None)


def test_results_errors_and_timeouts(client, scheduler):
    assert client.submit(inc, 1).result() == 2
    failed = client.submit(fail, 3)
    with pytest.raises(ValueError, match="not 3"):
        failed.result()
    assert isinstance(failed.exception(), ValueError)
    assert failed.traceback() is not None
    scheduler.holds = True
    pending = client.submit(inc, 10)
    with pytest.raises(TimeoutError, match="not ended"):
        pending.result(timeout="10ms")
    with pytest.raises(TimeoutError):
        wait([pending], timeout=0.01)
    assert not pending.record.watchers
    completed = as_completed([pending], timeout=0.01)
    with pytest.raises(TimeoutError):
        list(completed)
    reference = weakref.ref(completed)
    del completed
    assert reference() is None


def test_a_task_that_exits_does_not_end_the_client(client):
    future = client.submit(leave, 4)
    for ask in (future.result, lambda: client.gather([future])):
        with pytest.raises(SystemExit):
            ask()
    assert client.submit(inc, 1).result() == 2


def test_many_threads_may_submit_at_once(client):
    results = {}

    def work(name):
        futures = [client.submit(inc, (name, i)[1] + 1000 * name) for i in range(200)]
        results[name] = client.gather(futures)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == {n: [1000 * n + i + 1 for i in range(200)] for n in range(4)}


def test_graphs_and_collections_are_finished(client):
    import dask.array as da

    assert client.get({"a": 1, "b": (inc, "a")}, ["b", ["a"]]) == [2, [1]]
    x = da.ones((10, 10), chunks=5)
    assert client.compute(x.sum(), sync=True) == 100
    assert client.compute(x.sum()).result() == 100
    assert x.sum().compute(scheduler=client) == 100
    assert client.persist(x).sum().compute(scheduler=client) == 100


def test_waiting_tells_done_from_not_done(client, scheduler):
    done = client.submit(inc, 1)
    done.result()
    scheduler.holds = True
    pending = client.submit(inc, 2)
    first = wait([done, pending], return_when="FIRST_COMPLETED")
    assert first.done == {done}
    assert first.not_done == {pending}
    assert wait([done]).not_done == set()
    assert wait([]).done == set()
    with pytest.raises(TypeError, match="wait\\(\\[x, y\\]\\)"):
        wait(done, pending)
    with pytest.raises(ValueError, match="return_when is"):
        wait([done], return_when="SOMETIME")


def test_completed_futures_come_as_they_end(client, scheduler):
    scheduler.holds = True
    futures = client.map(inc, range(3))
    client.sync(scheduler.heard_of, SubmitTasks)
    completed = as_completed(futures)
    assert (completed.count(), completed.has_ready()) == (3, False)
    assert completed.next_batch(block=False) == []
    client.loop.call_soon_threadsafe(scheduler.let_go, 1)
    assert completed.next() is futures[0]
    completed.add(client.submit(inc, 0))  # one that has ended already
    assert next(completed).key == futures[0].key
    client.loop.call_soon_threadsafe(scheduler.let_go)
    assert {f for batch in completed.batches() for f in batch} == set(futures[1:])
    assert completed.is_empty()


def test_completed_futures_come_with_results_or_errors(client):
    futures = [client.submit(inc, 1), client.submit(fail, 2)]
    got = dict(as_completed(futures, with_results=True, raise_errors=False))
    assert got[futures[0]] == 2
    kind, error, trace = got[futures[1]]
    assert kind is ValueError
    assert isinstance(error, ValueError)
    assert trace is not None
    with pytest.raises(ValueError, match="not 2"):
        list(as_completed(futures, with_results=True))
    with pytest.raises(TypeError, match="not int"):
        as_completed([1])
    cleared = as_completed(futures)
    cleared.clear()
    assert list(cleared) == []


def test_cancelled_futures_are_completed_and_refuse_their_result(client, scheduler):
    scheduler.holds = True
    future = client.submit(inc, 1)
    client.cancel(future)
    assert list(as_completed([future])) == [future]
    with pytest.raises(CancelledError):
        future.result()
    with pytest.raises(CancelledError):
        wait([future])
    assert isinstance(future.exception(), CancelledError)


def test_a_lost_scheduler_wakes_whoever_waits(client, scheduler):
    scheduler.holds = True
    future = client.submit(inc, 1)
    client.sync(scheduler.heard_of, SubmitTasks)
    client.loop.call_soon_threadsafe(scheduler.hang_up)
    with pytest.raises(CancelledError, match="connection to the scheduler was lost"):
        future.result()


def test_futures_can_be_awaited_on_any_loop(client):
    async def elsewhere():
        return await client.submit(inc, 1)

    assert asyncio.run(elsewhere()) == 2


def test_callbacks_come_after_the_result(client):
    called = threading.Event()
    future = client.submit(inc, 1)
    future.add_done_callback(lambda done: called.set() if done.result() == 2 else None)
    assert called.wait(10)
    ended = threading.Event()
    CALLBACKS.put(lambda _: ended.set(), None)
    assert ended.wait(10)


class CtrlC:
    """Interrupts the main thread once, however often its signal has to be sent: one that comes
    just before a thread begins to wait does not wake it."""

    def __init__(self):
        self.sending = threading.Thread(target=self._send)
        self.raised = threading.Event()

    def on_signal(self, number, frame):
        if not self.raised.is_set():
            self.raised.set()
            raise KeyboardInterrupt

    def press(self):
        self.sending.start()

    def _send(self):
        while not self.raised.wait(0.05):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.fixture
def ctrl_c():
    keys = CtrlC()
    before = signal.signal(signal.SIGINT, keys.on_signal)
    yield keys
    keys.raised.set()
    if keys.sending.ident is not None:
        keys.sending.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("wait_for", ["result", "gather", "wait"])
def test_ctrl_c_ends_a_wait_and_the_client_lives(client, scheduler, ctrl_c, wait_for):
    scheduler.holds = True
    future = client.submit(inc, 1)
    ways = {"result": future.result, "gather": lambda: client.gather([future])}
    client.loop.call_soon_threadsafe(ctrl_c.press)
    with pytest.raises(KeyboardInterrupt):
        ways.get(wait_for, lambda: wait([future]))()
    client.loop.call_soon_threadsafe(scheduler.let_go)
    assert future.result() == 2
    assert not future.record.watchers


def test_ctrl_c_while_a_result_is_fetched_loses_no_future(client, scheduler, thread, ctrl_c):
    worker = InterruptingWorker(ctrl_c.press)
    thread.run(worker.__aenter__())
    scheduler.holds = True
    future = client.submit(len, "a", key="a")
    message = thread.run(scheduler.heard_of(SubmitTasks))[0]
    worker.values[message.first] = "large a"
    told = TaskInMemory(message.first, message.first, 1000, None, [worker.address], "x.y")
    client.loop.call_soon_threadsafe(scheduler.say, told)
    completed = as_completed([future], with_results=True)
    with pytest.raises(KeyboardInterrupt):
        next(completed)
    assert list(completed) == [(future, "large a")]
    thread.run(worker.__aexit__())


class InterruptingWorker(FakeWorker):
    """Who asks it first is interrupted instead of being answered."""

    def __init__(self, interrupt):
        super().__init__()
        self.interrupt = interrupt

    def _on_messages(self, connection, messages, buffers):
        if self.asked:
            super()._on_messages(connection, messages, buffers)
        else:
            self.asked.extend(messages)
            self.interrupt()


def test_a_value_that_cant_be_read_here_raises_that_and_has_had_its_turn(client, scheduler, thread):
    worker = FakeWorker()
    thread.run(worker.__aenter__())
    scheduler.holds = True
    future = client.submit(len, "a", key="a")
    message = thread.run(scheduler.heard_of(SubmitTasks))[0]
    worker.values[message.first] = Unreadable()
    told = TaskInMemory(message.first, message.first, 1000, None, [worker.address], "x.y")
    client.loop.call_soon_threadsafe(scheduler.say, told)
    completed = as_completed([future], with_results=True)
    with pytest.raises(ValueError, match="not read"):
        next(completed)
    assert not list(completed)
    thread.run(worker.__aexit__())


class Unreadable:
    def __reduce__(self):
        return fail, ("read",)


def test_a_client_that_is_closed_says_so_and_closes_once(scheduler):
    client = Client(scheduler.address, security=TOKEN, set_as_default=False)
    future = client.submit(inc, 1)
    client.close()
    client.close()
    assert client.status == "closed"
    with pytest.raises(ClientClosed):
        client.submit(inc, 1)
    assert future.status == "cancelled" or future.result() == 2


def test_a_client_that_is_dropped_leaves_nothing(scheduler):
    client = Client(scheduler.address, security=TOKEN, set_as_default=False)
    future = client.submit(inc, 1)
    session = client.session
    del client
    gc.collect()
    assert session.status == "running"  # the future still needs it
    assert future.result() == 2
    del future
    gc.collect()
    thread = LoopThread.acquire()
    thread.run(session.close())
    assert session.status == "closed"
    thread.release()


def test_dropped_futures_are_released_without_a_call(client, scheduler):
    futures = client.map(inc, range(50))
    client.gather(futures)
    del futures
    client.sync(scheduler.heard_of, ReleaseTasks)
    assert not scheduler.values


def test_an_asynchronous_client_is_a_client():
    made = Client("tcp://127.0.0.1:1", asynchronous=True, set_as_default=False)
    assert type(made) is AsyncClient
    assert isinstance(made, Client)
    assert issubclass(AsyncClient, Client)
    assert not isinstance(1, Client)


def test_the_default_client_is_the_newest_open_one(scheduler):
    import dask
    import dask.config

    before = dask.config.get("scheduler", None)
    with pytest.raises(NoClient):
        Client.current()
    first = Client(scheduler.address, security=TOKEN)
    second = Client(scheduler.address, security=TOKEN)
    assert Client.current() is second
    with first.as_current():
        assert Client.current(allow_global=False) is first
    assert dask.delayed(inc)(1).compute() == 2
    second.close()
    assert Client.current() is first
    with pytest.raises(NoClient):
        Client.current(allow_global=False)
    first.close()
    assert dask.config.get("scheduler", None) == before


OWNER = """
from shoal import Client

def work():
    client = Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    print(client.submit(abs, -1).result())

work()
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "client = Client(processes=False)"])
def test_a_cluster_that_a_dropped_client_started_is_closed_quietly(end):
    assert printed_by("-c", OWNER + end) == "1\n"


SCRIPT = """
import asyncio
from shoal.client.blocking import LoopThread
from shoal.client.client import Client
from tests.unit.client.fake_scheduler import TOKEN, FakeScheduler
from tests.unit.client.fake_worker import FakeWorker

scheduler = FakeScheduler()
LoopThread.acquire().run(scheduler.__aenter__())
client = Client(scheduler.address, security=TOKEN)
futures = client.map(str, range(10))
print(client.gather(futures)[-1])
"""


def test_a_program_that_just_ends_is_quiet():
    assert printed_by("-c", SCRIPT, path=(ROOT,)) == "9\n"


def test_a_map_that_outlives_its_scheduler_leaves_no_future_that_waits_for_ever(client, scheduler):
    """What is wanted after the end, nobody would ever resolve."""
    scheduler.holds = True
    waiting = client.submit(inc, 0)

    class Items(list):
        def __iter__(self):
            yield from range(MAP_SLICE_TASKS)
            client.loop.call_soon_threadsafe(scheduler.hang_up)
            assert isinstance(waiting.exception(10), CancelledError)
            yield 1

    with pytest.raises(ClientClosed):
        client.map(inc, Items())
