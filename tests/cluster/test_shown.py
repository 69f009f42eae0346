"""What a scheduler shows of all its tasks and workers, to code beside it and from elsewhere."""

import time

import pytest

from shoal import Client, LocalCluster, wait
from shoal.testing.clusters import gen_test

OPTIONS = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}


def fail():
    raise LookupError("on purpose")


@gen_test()
async def test_code_beside_the_scheduler_sees_how_tasks_ended():
    async with (
        LocalCluster(processes=False, asynchronous=True, **OPTIONS) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        good = client.map(abs, range(4), key="good")
        bad = client.submit(fail, key="bad")
        blamed = client.submit(abs, bad, key="blamed")
        await wait([*good, bad, blamed])
        scheduler, began_at = cluster.scheduler, time.time()

        (erred,) = scheduler.erred_tasks
        assert erred.key == "bad"
        assert erred.erred_on <= scheduler.workers.keys()
        assert "on purpose" in erred.exception_text
        assert erred.timestamp == pytest.approx(began_at, abs=30.0)

        task, victim = scheduler.tasks["bad"], scheduler.tasks["blamed"]
        assert isinstance(task.exception, LookupError)
        assert task.traceback is not None
        assert (task.erred_on, victim.erred_on) == (erred.erred_on, set())
        assert victim.exception is victim.traceback is None
        assert task.exception_blame == victim.exception_blame == task
        assert scheduler.tasks[good[0].key].exception_blame is None

        groups = scheduler.task_groups
        assert groups["good"].states["memory"] == 4
        assert groups["blamed"].dependencies == {"bad"}
        assert scheduler.n_tasks == 6
        assert scheduler.is_idle
        assert scheduler.replicated_tasks == set()
        await client.replicate(good[:1])
        assert scheduler.replicated_tasks == {scheduler.tasks[good[0].key]}


@gen_test()
async def test_code_beside_the_scheduler_sees_what_workers_have():
    async with (
        LocalCluster(processes=False, asynchronous=True, resources={"A": 2}, **OPTIONS) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        kept = client.submit(bytes, 1000)
        await wait(kept)
        scattered = await client.scatter(1)

        def story(key, dask_worker):
            return [record[1] for record in dask_worker.state.story(key)]

        stories = (await client.run(story, scattered.key)).values()
        assert sorted(stories) == [[], ["receive-from-scatter"]]
        scheduler = cluster.scheduler
        assert scheduler.resources == {"A": dict.fromkeys(scheduler.workers, 2.0)}
        assert scheduler.running == scheduler.idle_task_count == set(scheduler.workers.values())
        assert scheduler.saturated == set()
        assert scheduler.bandwidth > 0
        (host,) = scheduler.host_info.values()
        assert (host["addresses"], host["nthreads"]) == (set(scheduler.workers), 2)
        assert scheduler.memory.managed == sum(w.nbytes for w in scheduler.workers.values()) > 0
        for worker in scheduler.workers.values():
            facts = client.scheduler_info()["workers"][worker.address]
            told = ("address", "id", "name", "host", "pid", "nthreads", "resources", "status")
            assert worker.identity().keys() == facts.keys()
            assert [worker.identity()[one] for one in told] == [facts[one] for one in told]
            assert worker.last_seen == pytest.approx(time.time(), abs=30.0)
            assert worker.local_directory == worker.identity()["local_directory"]
            assert worker.used_resources == {"A": 0.0}
            assert worker.nanny is None
            assert worker.metrics["managed_bytes"] == worker.nbytes
            assert worker.needs_what == worker.task_prefix_count == worker.services == {}
            assert worker.actors == worker.long_running == set()


def test_workers_of_a_scheduler_elsewhere_show_the_same():
    with LocalCluster(**OPTIONS) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        scheduler, facts = cluster.scheduler, client.scheduler_info()["workers"]
        assert scheduler.running == scheduler.idle_task_count == set(scheduler.workers.values())
        assert scheduler.memory.process >= 0
        (host,) = scheduler.host_info.values()
        assert host["nthreads"] == 2
        for address, worker in scheduler.workers.items():
            assert worker.nanny == facts[address]["nanny"] is not None
            assert worker.identity().keys() == facts[address].keys()
            assert worker.local_directory == facts[address]["local_directory"]
            assert worker.services == {}
            assert worker.metrics.keys() == facts[address]["metrics"].keys()
            assert worker.last_seen >= facts[address]["last_seen"]
