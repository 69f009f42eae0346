"""What clients agree on by name, on either face; locks have a file of their own."""

import os
import pickle
import threading
import time

import pytest

from shoal import Event, Lock, MultiLock, Pub, Queue, Semaphore, Sub, Variable, get_client, wait
from shoal.client.coordination.errors import NotHeld, NotLocked, ValueTooLarge
from shoal.errors import InconsistentLeases, LockNotKnown
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask, play_asynchronous, play_blocking


async def events(client):
    event, same = Event("a"), Event("a")
    assert await ask(event.is_set()) is False
    assert await ask(event.wait(timeout=0.01)) is False
    assert await ask(event.wait(timeout=0)) is False
    await ask(same.set())
    assert await ask(event.is_set()) is True
    assert await ask(event.wait()) is True
    await ask(event.clear())
    assert await ask(same.is_set()) is False


async def semaphores(client):
    first, second = Semaphore(2, "s"), Semaphore(name="s", max_leases=2)
    assert await ask(first.acquire()) is True
    assert await ask(second.acquire(timeout="1 s")) is True
    assert await ask(first.acquire(timeout=0.01)) is False
    assert await ask(first.acquire(timeout=0)) is False
    assert await ask(second.get_value()) == 2
    assert await ask(second.release()) is True
    with pytest.raises(NotHeld, match="Released too often"):
        second.release()
    assert await ask(first.get_value()) == 1
    with pytest.raises(InconsistentLeases, match="Inconsistent max leases"):
        await ask(Semaphore(3, "s").register())
    with pytest.raises(ValueError, match="max_leases"):
        Semaphore(0)


async def closed_semaphores(client):
    semaphore = Semaphore(2)
    await ask(semaphore.acquire())
    with pytest.warns(RuntimeWarning, match="there remain unreleased leases .1."):
        await ask(semaphore.close())
    with pytest.raises(LockNotKnown, match="not known"):
        await ask(semaphore.acquire())
    anew = Semaphore(3, semaphore.name)
    assert await ask(anew.acquire()) is True
    await ask(anew.release())
    await ask(anew.close())
    assert (await ask(client.coordination_info()))["locks"] == {}


async def several_locks(client):
    both, other = MultiLock(["x", "y"]), MultiLock(["y", "z"])
    assert await ask(both.acquire()) is True
    assert await ask(other.acquire(blocking=False)) is False
    assert await ask(other.acquire(timeout=0.01)) is False
    assert not other.locked()
    assert await ask(other.acquire(num_locks=1)) is True
    assert both.locked()
    assert other.locked()
    await ask(both.release())
    await ask(other.release())
    with pytest.raises(NotLocked):
        both.release()
    with pytest.raises(ValueError, match="num_locks=3"):
        both.acquire(num_locks=3)
    assert await ask(MultiLock([]).acquire()) is True


async def queues(client):
    queue, same = Queue("q"), Queue("q")
    values = [1, "two", [3], ("four",), {"five": b"6"}, None, ValueError("seven")]
    for value in values:
        await ask(queue.put(value))
    assert await ask(same.qsize()) == len(values)
    assert await ask(same.get()) == 1
    assert await ask(same.get(batch=2)) == ["two", [3]]
    rest = await ask(same.get(batch=True))
    assert rest[:3] == values[3:6]
    assert str(rest[3]) == "seven"
    assert await ask(queue.get(batch=True)) == []
    with pytest.raises(TimeoutError, match="no value in the queue 'q'"):
        await ask(queue.get(timeout=0.01))
    await ask(queue.close())
    assert (await ask(client.coordination_info()))["queues"] == {}


async def full_queues(client):
    queue = Queue("f", maxsize=1)
    await ask(queue.put(1))
    with pytest.raises(TimeoutError, match="no room in the queue 'f'"):
        await ask(queue.put(2, timeout="20ms"))
    assert await ask(queue.get(batch=True)) == [1]
    assert await ask(queue.qsize()) == 0
    with pytest.raises(ValueTooLarge, match="scatter"):
        queue.put(bytes(65 * 2**20))


async def futures_in_queues(client):
    queue = Queue("g")
    future = client.submit(sum, [1, 2])
    await ask(queue.put({"deep": [future, future]}))
    key = future.key
    future.release()
    taken = await ask(queue.get())
    first, second = taken["deep"]
    assert first.key == second.key == key
    assert await ask(first.result()) == 3


async def variables(client):
    variable, same = Variable("v"), Variable("v")
    with pytest.raises(TimeoutError, match="no value of the variable 'v'"):
        await ask(variable.get(timeout=0.01))
    await ask(variable.set([1, (2,)]))
    assert await ask(same.get()) == [1, (2,)]
    future = client.submit(sum, [1, 2])
    await ask(same.set(future))
    del future
    held = await ask(variable.get(timeout=5))
    await ask(variable.set(None))
    assert await ask(held.result()) == 3
    assert await ask(same.get()) is None
    await ask(variable.delete())
    assert (await ask(client.coordination_info()))["variables"] == {}


async def channels(client):
    early, publisher = Pub("c"), Pub("c")
    await ask(early.put("nobody hears it"))
    sub = Sub("c")
    for value in ("one", {"two": 2}):
        await ask(publisher.put(value))
    assert await ask(sub.get()) == "one"
    assert await ask(sub.get(timeout=5)) == {"two": 2}
    with pytest.raises(TimeoutError, match="no message in the channel 'c'"):
        await ask(sub.get(timeout=0.01))
    await ask(publisher.put("three"))
    if client.is_blocking:
        assert next(sub) == "three"
    else:
        assert await anext(sub) == "three"


async def who_holds_what(client):
    lock = Lock("db")
    assert await ask(lock.holder()) is None
    await ask(lock.acquire())
    holder = await ask(lock.holder())
    assert holder["client"] == client.id
    assert holder["task"] is None
    assert (await ask(client.coordination_info()))["locks"]["db"]["holder"]["client"] == client.id
    await ask(lock.release())
    semaphore = Semaphore(2, "s2")
    await ask(semaphore.acquire())
    assert [held["client"] for held in await ask(semaphore.holders())] == [client.id]
    await ask(semaphore.release())
    await ask(semaphore.close())


async def copies(client):
    """Each knows the same thing by the same name."""
    for made in (Lock("a"), Semaphore(3, "b"), MultiLock(["c"]), Event("d"), Queue("e", maxsize=2)):
        copy = pickle.loads(pickle.dumps(made))
        assert type(copy) is type(made)
        assert copy._arguments() == made._arguments()
        assert len(pickle.dumps(made)) < 150


SCENARIOS = [
    events,
    semaphores,
    closed_semaphores,
    several_locks,
    queues,
    full_queues,
    futures_in_queues,
    variables,
    channels,
    who_holds_what,
    copies,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_names_are_shared(play, scenario):
    play(scenario)


async def statements(client):
    semaphore, several = await Semaphore(1, "s"), MultiLock(["x", "y"])
    async with semaphore, several:
        assert await semaphore.get_value() == 1
        assert several.locked()
    assert await semaphore.get_value() == 0
    assert not several.locked()


def test_what_is_held_for_a_block_is_let_go_of_at_its_end():
    play_asynchronous(statements, processes=False, **SMALL)


# --- in tasks --------------------------------------------------------------------------------


def produce(queue, n):
    for i in range(n):
        queue.put(i)
    return n


def consume(queue, n):
    return [queue.get() for _ in range(n)]


def guarded(lock, counter):
    with lock:
        client = get_client()
        before = counter.get()
        after = client.submit(lambda x: x + 1, before, pure=False).result()
        counter.set(after)


def hold(lock, is_held, may_end):
    with lock:
        is_held.set()
        may_end.wait()


async def waits_in_tasks(client):
    """On one thread: who waits has a substitute, so those he waits for can run."""
    queue, lock, counter = Queue("t"), Lock("t"), Variable("t")
    consumer = client.submit(consume, queue, 10)
    producer = client.submit(produce, queue, 10)
    assert await ask(consumer.result(timeout=20)) == list(range(10))
    assert await ask(producer.result()) == 10
    await ask(counter.set(0))
    tasks = [client.submit(guarded, lock, counter, pure=False) for _ in range(5)]
    await ask(client.gather(tasks))
    assert await ask(counter.get()) == 5


@pytest.mark.parametrize("face", [play_blocking, play_asynchronous])
def test_a_task_that_waits_makes_room_for_those_it_waits_for(face):
    face(waits_in_tasks, n_workers=1, threads_per_worker=1, processes=False)


def take_twice_release_once_more(i, semaphore):
    with semaphore:
        assert semaphore.acquire()
        semaphore.release()
    try:
        semaphore.release()
    except NotHeld:
        return i
    raise AssertionError("it let go of what another task holds")


async def shared_objects(client):
    """The tasks of one map have one object, and none releases what another has acquired."""
    semaphore = Semaphore(8)
    futures = client.map(take_twice_release_once_more, range(20), semaphore=semaphore)
    assert await ask(client.gather(futures)) == list(range(20))
    for _ in range(8):  # all are free again, as soon as the workers' clients have said so
        assert await ask(semaphore.acquire(timeout=20))


@pytest.mark.parametrize("face", [play_blocking, play_asynchronous])
def test_a_task_releases_only_what_it_has_acquired(face):
    face(shared_objects, n_workers=1, threads_per_worker=4, processes=False)


async def holders_in_tasks(client):
    """The task that holds it is named, and so is the one that waits."""
    lock, is_held, may_end = Lock("db"), Event("held"), Event("end")
    holding = client.submit(hold, lock, is_held, may_end, key="holder")
    await ask(is_held.wait())
    assert await ask(lock.acquire(timeout=0.01)) is False
    second = client.submit(hold, lock, is_held, may_end, key="second")
    deadline = time.monotonic() + 20
    while True:
        facts = (await ask(client.coordination_info()))["locks"]["db"]
        if facts["waiting"]:
            break
        assert time.monotonic() < deadline
    assert facts["holder"]["task"] == "holder"
    assert facts["holder"]["worker"] in (await ask(client.nthreads()))
    assert [waiting["task"] for waiting in facts["waiting"]] == ["second"]
    await ask(may_end.set())
    await ask(client.gather([holding, second]))


@pytest.mark.parametrize("face", [play_blocking, play_asynchronous])
def test_the_task_that_holds_a_lock_is_named(face):
    face(holders_in_tasks, processes=False, **SMALL)


async def unused_handles(client):
    """Two hundred tasks with five semaphores each, of which none is used."""
    semaphores = {f"s{i}": Semaphore(2, f"s{i}") for i in range(5)}
    futures = client.map(lambda i, semaphores: len(semaphores), range(200), semaphores=semaphores)
    assert await ask(client.gather(futures)) == [5] * 200
    info = await ask(client.coordination_info())
    assert all(not known for known in info.values())


def test_a_handle_that_is_not_used_costs_nothing(play):
    play(unused_handles)


def die_at_once(lock, is_held):
    if is_held.is_set():
        return "ran again"
    lock.acquire()
    is_held.set()
    os._exit(1)


def test_a_lock_is_free_as_soon_as_the_worker_that_held_it_has_died():
    async def scenario(client):
        lock, is_held = Lock("l"), Event("held")
        dying = client.submit(die_at_once, lock, is_held)
        assert is_held.wait(20)
        started_at = time.monotonic()
        assert lock.acquire(timeout=20)
        assert time.monotonic() - started_at < 5
        wait(dying)

    play_blocking(scenario, n_workers=2, threads_per_worker=1, processes=True)


def test_threads_of_one_client_take_turns_with_one_object():
    async def scenario(client):
        lock, counter, counts = Lock(), Variable(), []

        def count():
            for _ in range(25):
                with lock:
                    counter.set(counter.get() + 1)
            counts.append(25)

        counter.set(0)
        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counter.get() == sum(counts) == 100

    play_blocking(scenario, processes=False, **SMALL)


async def work_on_a_loop(lock, queue, event, variable, several):
    """A task that is a coroutine, in which every kind has to be awaited."""
    async with lock, several, Semaphore(1, "s"):
        await queue.put("a value")
        await variable.set(await queue.get(timeout=5))
        await queue.close()
        await event.set()
    sub = Sub("c")
    await Pub("c").put("told")
    return await sub.get(timeout=5), await variable.get()


def work_in_a_thread(lock, queue):
    """A thread of a task's own has the client of the task's worker, if it is told so."""
    client, told = get_client(), []

    def put():
        with client.as_current(), lock:
            queue.put(threading.get_ident())

    thread = threading.Thread(target=put)
    thread.start()
    told.append(queue.get(timeout=20))
    thread.join()
    return told == [thread.ident]


async def in_coroutines_and_threads(client):
    event, variable = Event("e"), Variable("v")
    names = Lock("l"), Queue("q"), event, variable, MultiLock(["x", "y"])
    future = client.submit(work_on_a_loop, *names)
    assert await ask(future.result(timeout=20)) == ("told", "a value")
    assert await ask(event.wait(timeout=20)) is True
    assert await ask(client.submit(work_in_a_thread, Lock("l"), Queue("r")).result(timeout=20))


@pytest.mark.parametrize("face", [play_blocking, play_asynchronous])
def test_coroutines_and_threads_agree_as_well(face):
    face(in_coroutines_and_threads, processes=False, **SMALL)
