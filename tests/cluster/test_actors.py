"""Actors through both faces: calls in order, real futures, attributes, and what their end looks
like."""

import asyncio
import os
import pickle
import threading

import dask
import numpy as np
import pytest

from shoal import (
    Actor,
    ActorFuture,
    BaseActorFuture,
    Client,
    as_completed,
    get_client,
    get_worker,
    wait,
)
from shoal.client.errors import BlockingCall
from shoal.errors import ActorLost, NoSuchActor
from tests.cluster.conftest import SMALL
from tests.cluster.faces import FACES, ask

GATE, GONE = threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def gate():
    GATE.clear()
    GONE.clear()
    yield
    GATE.set()


class Counter:
    n: int = 0
    said: list  # of what was called

    def __init__(self, start=0):
        self.n = start
        self.said = []
        self.hidden = 1

    def __del__(self):
        GONE.set()

    def inc(self):
        self.n += 1
        return self.n

    async def ainc(self):
        self.n += 1
        return self.n

    def say(self, word):
        self.said.append(word)

    def wait_here(self):
        return GATE.wait(10)

    def boom(self):
        raise KeyError("no such thing")

    async def attend(self):
        raise AttributeError("nothing")

    async def leave(self):
        raise SystemExit

    def keep(self, array):
        self.array = array
        return array.sum()

    def change(self):
        self.array += 1

    def give(self):
        return self.array

    def where(self):
        return threading.get_ident(), get_worker().address

    def by_client(self, x):
        return get_client().submit(abs, x).result()

    def of(self, other):
        return other.inc().result()

    def back_and_forth(self, other, me):
        return other.of(me).result()

    def die(self):
        os._exit(3)

    @property
    def twice(self):
        return 2 * self.n


def add(x, y):
    return x + y


def use(counter, n=1):
    return [counter.inc().result() for _ in range(n)][-1]


def use_inside(container):
    return container["inner"][0].inc().result()


def test_methods_return_futures_and_attributes_are_read(play):
    async def scenario(client):
        future = client.submit(Counter, 5, actor=True)
        counter = await ask(future.result())
        assert type(counter) is Actor
        assert future.type is Counter
        assert "Counter" in repr(counter)
        assert {"inc", "n", "said", "twice"} <= set(dir(counter))
        call = counter.inc()
        assert isinstance(call, ActorFuture)
        assert isinstance(call, BaseActorFuture)
        assert await ask(client.gather(call)) == 6
        assert call.done()
        assert call.status == "finished"
        assert call.result() == 6  # again, and now on a loop as well
        assert await ask(client.gather(counter.n)) == 6
        assert await ask(client.gather(counter.twice)) == 12
        assert await ask(client.gather(counter.said)) == []
        assert not hasattr(counter, "hidden")
        with pytest.raises(AttributeError, match="Give the class a method"):
            counter.n = 3

    play(scenario)


def test_calls_of_one_caller_are_made_in_their_order(play_in_processes):
    async def scenario(client):
        counter = await ask(client.submit(Counter, actor=True).result())
        calls = [counter.say(i) for i in range(300)]
        await ask(wait(calls))
        assert await ask(client.gather(counter.said)) == list(range(300))

    play_in_processes(scenario)


def test_their_futures_are_real_ones(play):
    async def scenario(client):
        counter = await ask(client.submit(Counter, actor=True).result())
        plain = client.submit(add, 1, 2)
        assert await ask(client.gather([counter.inc(), {"a": (counter.inc(), plain)}])) == [
            1,
            {"a": (2, 3)},
        ]
        done, not_done = await ask(wait([counter.inc(), plain]))
        assert len(done) == 2
        assert not not_done
        assert await ask(client.submit(add, counter.inc(), 10).result()) == 14
        many = client.map(add, [counter.inc(), counter.inc()], [0, 0])
        assert await ask(client.gather(many)) == [5, 6]
        failed = client.submit(add, counter.boom(), 1)
        with pytest.raises(KeyError, match="no such thing"):
            await ask(failed.result())
        assert await ask(client.gather([counter.boom(), counter.inc()], errors="skip")) == [7]

    play(scenario)


def test_gathered_together_the_first_that_fails_is_raised_whatever_the_others_do(play):
    async def scenario(client):
        counter = await ask(client.submit(Counter, actor=True).result())
        waiting = counter.wait_here()
        with pytest.raises(ZeroDivisionError):
            await ask(client.gather([waiting, client.submit(divmod, 1, 0)]))
        with pytest.raises(AttributeError, match="nothing"):
            await ask(client.gather([waiting, counter.attend()]))
        with pytest.raises(SystemExit):
            await ask(client.gather([waiting, counter.leave()]))
        assert not waiting.done()

    play(scenario)


def test_as_completed_gives_them_as_they_end():
    with Client(processes=False, **SMALL) as client:
        slow, quick = client.gather([client.submit(Counter, i, actor=True) for i in range(2)])
        waiting = slow.wait_here()
        completed = as_completed([waiting, quick.inc()], with_results=True, timeout=10)
        assert next(completed)[1] == 2
        GATE.set()
        assert list(completed) == [(waiting, True)]


def test_a_long_call_holds_no_thread_of_tasks_and_is_waited_for_by_the_next(play):
    """With two workers of one thread each, both actors wait, and tasks run all the same."""

    async def scenario(client):
        actors = await ask(client.gather([client.submit(Counter, i, actor=True) for i in (1, 2)]))
        waiting = [actor.wait_here() for actor in actors]
        after = actors[0].inc()
        sums = client.map(add, range(4), range(4))
        assert await ask(client.gather(sums)) == [0, 2, 4, 6]
        assert await ask(client.gather(actors[0].n)) == 1  # attributes can be read meanwhile
        assert not after.done()
        assert await ask(client.gather(actors[0].ainc())) == 2  # of coroutines, several may run
        GATE.set()
        assert await ask(client.gather([*waiting, after])) == [True, True, 3]

    play(scenario)


def test_it_has_one_thread_of_its_own(play):
    async def scenario(client):
        counter = await ask(client.submit(Counter, actor=True).result())
        found = await ask(client.gather([counter.where() for _ in range(20)]))
        assert len(dict.fromkeys(found)) == 1
        assert found[0][1] == counter._address
        assert await ask(client.gather(counter.by_client(-3))) == 3

    play(scenario)


def test_tasks_and_other_actors_call_it(play):
    async def scenario(client):
        counter, other = await ask(
            client.gather([client.submit(Counter, i, actor=True) for i in (0, 10)])
        )
        tasks = client.map(use, [counter] * 3, [2, 2, 2], pure=False)
        assert max(await ask(client.gather(tasks))) == 6
        assert await ask(client.gather(other.of(counter))) == 7
        assert await ask(client.submit(use_inside, {"inner": [counter]}).result()) == 8

    play(scenario)


@pytest.mark.parametrize("face", sorted(FACES))
def test_actors_of_one_worker_call_each_other_and_back_without_waiting_for_ever(face):
    async def scenario(client):
        one, other = await ask(
            client.gather([client.submit(Counter, i, actor=True) for i in (0, 10)])
        )
        crossing = [one.back_and_forth(other, one), other.back_and_forth(one, other)]
        assert sorted(await ask(client.gather(crossing))) == [1, 11]

    FACES[face](scenario, processes=False, **SMALL | {"n_workers": 1})


def test_what_a_call_raises_has_its_traceback(play):
    async def scenario(client):
        counter = await ask(client.submit(Counter, actor=True).result())
        call = counter.boom()
        with pytest.raises(KeyError, match="no such thing") as caught:
            await ask(client.gather(call))
        assert caught.traceback[-1].name == "boom"
        assert isinstance(call.exception(), KeyError)
        with pytest.raises(TypeError, match="unexpected keyword"):
            await ask(client.gather(counter.inc(bad=1)))

    play(scenario)


@pytest.mark.parametrize("direct", [True, False])
def test_large_arguments_and_results_arrive_as_they_were(direct):
    with Client(processes=True, direct_to_workers=direct, **SMALL) as client:
        counter = client.submit(Counter, actor=True).result()
        array = np.ones(300_000)
        total = counter.keep(array)
        array += 1  # after the call was made
        assert total.result() == 300_000
        given = counter.give()
        counter.change()
        assert given.result().sum() == 300_000
        assert counter.give().result().sum() == 600_000
        with pytest.raises(KeyError):
            counter.boom().result()
        assert counter.twice == 0


def test_it_lives_as_long_as_a_future_or_a_proxy_of_the_client(play):
    async def scenario(client):
        future = client.submit(Counter, actor=True)
        counter = await ask(future.result())
        address = counter._address
        del future
        assert await ask(client.gather(counter.inc())) == 1
        used = client.submit(use, counter)
        assert await ask(used.result()) == 2
        calls = [counter.inc() for _ in range(3)]
        stale = pickle.loads(pickle.dumps(counter))
        stale._future.release()
        del counter  # what was called before is still done
        assert await ask(client.gather(calls)) == [3, 4, 5]
        del calls
        await ask(client.submit(has_gone).result())
        assert not any((await ask(client.run(actors_of))).values())
        with pytest.raises(NoSuchActor, match=r"There is no actor"):
            await ask(client.gather(stale.inc()))
        assert address in (await ask(client.nthreads()))

    play(scenario)


def has_gone():
    assert GONE.wait(10)


def actors_of(dask_worker):
    return len(dask_worker.actors)


async def make_counter(start):
    return Counter(start)


def test_a_coroutine_function_may_make_it():
    with Client(processes=False, **SMALL) as client:
        counter = client.submit(make_counter, 4, actor=True).result()
        assert counter.inc().result() == 5


def test_collections_make_actors():
    with Client(processes=False, **SMALL) as client:
        counter = dask.delayed(Counter)(3)
        used = [dask.delayed(use)(counter, i + 1) for i in range(3)]
        total = dask.delayed(lambda c, _: c.n)(counter, used)
        assert client.compute(total, actors=counter).result() == 9
        assert client.get({"x": (Counter, 1), "y": (use, "x")}, "y", actors={"x": True}) == 2
        kept = client.persist(counter, actors=True)
        assert client.compute(kept).result().n == 3


def test_a_lost_actor_says_why_and_is_not_made_again(play_in_processes):
    async def scenario(client):
        future = client.submit(Counter, actor=True)
        counter = await ask(future.result())
        never = client.submit(abs, 1, resources={"nobody has this": 1})
        dependent = client.submit(pass_on, counter, never)
        with pytest.raises(ActorLost, match=r"Worker holding Actor was lost.*its process ended"):
            await ask(client.gather(counter.die()))
        for lost in (future, dependent):
            with pytest.raises(ActorLost, match="is not made again"):
                await ask(lost.result())
        with pytest.raises(RuntimeError, match="Worker holding Actor was lost"):
            await ask(client.gather(counter.inc()))

    play_in_processes(scenario)


def pass_on(x, _):
    return x


def test_whoever_waits_on_the_loop_that_would_bring_it_is_told():
    async def play():
        async with Client(asynchronous=True, processes=False, **SMALL) as client:
            counter = await client.submit(Counter, actor=True)
            with pytest.raises(BlockingCall):
                counter.wait_here().result()
            GATE.set()
            assert sorted(await asyncio.gather(counter.inc(), counter.ainc())) == [1, 2]

    asyncio.run(play())


def test_a_call_that_takes_too_long_goes_on():
    with Client(processes=False, **SMALL) as client:
        counter = client.submit(Counter, actor=True).result()
        call = counter.wait_here()
        with pytest.raises(TimeoutError, match=r"has not ended within 0.02 s"):
            call.result(timeout="20ms")
        GATE.set()
        assert call.result(timeout=10) is True


def test_calls_that_wait_end_with_the_client_that_made_them():
    with Client(processes=False, **SMALL) as main:
        with Client(main.cluster, set_as_default=False) as client:
            counter = client.submit(Counter, actor=True).result()
            waiting = counter.wait_here()
            assert counter.n == 0  # so the call has arrived
        with pytest.raises(Exception, match="closed"):
            waiting.result(timeout=10)
        with pytest.raises(Exception, match="closed"):
            counter.inc()


def test_a_worker_that_closes_ends_the_calls_that_wait_there():
    async def play():
        async with Client(asynchronous=True, processes=False, **SMALL) as client:
            counter = await client.submit(Counter, actor=True)
            waiting, queued = counter.wait_here(), counter.inc()
            assert await counter.n == 0
            (worker,) = [w for w in client.cluster.workers.values() if w.actors]
            await worker.close()
            for call in (waiting, queued):
                with pytest.raises(ActorLost, match="Worker holding Actor was lost"):
                    await call
            assert not worker.actors

    asyncio.run(play())


def test_a_worker_with_an_actor_is_kept_and_a_warning_says_why(play, caplog):
    async def scenario(client):
        counter = await ask(client.submit(Counter, actor=True).result())
        assert await ask(client.retire_workers([counter._address])) == {}
        assert "it has actors, which live on one worker and can't be moved" in caplog.text
        assert await ask(client.gather(counter.inc())) == 1

    play(scenario)


def test_a_data_set_keeps_an_actor(play):
    async def scenario(client):
        counter = await ask(client.submit(Counter, actor=True).result())
        await ask(client.gather(counter.inc()))
        await ask(client.publish_dataset(counter=counter))
        del counter
        again = await ask(client.get_dataset("counter"))
        assert await ask(client.gather(again.inc())) == 2
        await ask(client.unpublish_dataset("counter"))

    play(scenario)
