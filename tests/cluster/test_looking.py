"""Looks into a running cluster, through both faces."""

import asyncio
import json
import threading
import warnings
from importlib.metadata import version

import dask
import pytest

from shoal import Client, LocalCluster, wait
from shoal.observe.dumps import DumpArtefact, load_dump
from shoal.observe.plugins.dumping import ClusterDump
from shoal.observe.versions import VersionMismatchWarning
from tests.cluster.faces import ask

STARTED, MAY_END = threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def _nobody_has_started():
    STARTED.clear()
    MAY_END.clear()


def inc(x):
    return x + 1


def held_up(x):
    STARTED.set()
    MAY_END.wait(30)
    return x


async def held_up_on_the_loop(x):
    loop = asyncio.get_running_loop()
    STARTED.set()
    await loop.run_in_executor(None, MAY_END.wait, 30)
    return x


async def started():
    """Some task has begun to run."""
    assert STARTED.is_set() or await asyncio.get_running_loop().run_in_executor(
        None, STARTED.wait, 30
    )


def begun(client):
    """Wait until a task runs, on either face."""
    return started() if client.asynchronous else STARTED.wait(30)


@pytest.mark.parametrize("task", [held_up, held_up_on_the_loop])
def test_the_stack_of_a_running_task_ends_where_it_waits(play, task):
    async def scenario(client):
        future = client.submit(task, 1, key="slow")
        await ask(begun(client))
        looks = {}, {"futures": [future]}, {"keys": "slow"}
        for asked in looks:
            ((worker, stacks),) = (await ask(client.call_stack(**asked))).items()
            assert worker in await ask(client.nthreads())
            frames = stacks["slow"]
            assert any(task.__name__ in frame for frame in frames)
            assert not any("shoal/worker" in frame for frame in frames)
        assert await ask(client.processing()) == {
            address: ("slow",) if address == worker else ()
            for address in await ask(client.nthreads())
        }
        MAY_END.set()
        assert await ask(future.result()) == 1
        assert await ask(client.call_stack([future])) == {}

    play(scenario)


def test_sizes_are_told_by_function_and_by_key(play):
    async def scenario(client):
        parts = client.map(bytes, [10, 20], key=["part-1", "part-2"])
        await ask(wait(parts))
        by_key = await ask(client.nbytes(parts, summary=False))
        assert by_key["part-2"] - by_key["part-1"] == 10
        assert await ask(client.nbytes()) == {"bytes": sum(by_key.values())}
        assert await ask(client.nbytes(["nobody's"])) == {}
        twice = [*parts, *parts]
        assert await ask(client.nbytes(twice, summary=False)) == by_key

    play(scenario)


def test_a_story_has_both_sides_and_can_be_asked_for_by_its_causes(play):
    async def scenario(client):
        future = client.submit(inc, 1, key=("x", 0))
        assert await ask(future.result()) == 2
        told = await ask(client.story(future))
        states = [(entry[2], entry[3]) for entry in told if entry[0] == "scheduler"]
        assert states[0][0] == "released"
        assert states[-1][1] == "memory"
        assert {entry[1] for entry in told} == {("x", 0)}
        workers = [entry for entry in told if entry[0] != "scheduler"]
        assert [entry[2] for entry in workers][-1] == "finished"
        for cause in dict.fromkeys(entry[-2] for entry in told):
            entries = await ask(client.story(cause, on_error="ignore"))
            assert entries == [entry for entry in told if entry[-2] == cause]
        with pytest.raises(ValueError, match="on_error"):
            await ask(client.story("x", on_error="return"))

    play(scenario)


def test_versions_are_told_of_all_and_a_difference_is_raised_if_it_is_checked(play_in_processes):
    async def scenario(client):
        found = await ask(client.get_versions(check=True, packages=["msgspec"]))
        told = [found["scheduler"], found["client"], *found["workers"].values()]
        assert len(told) == 4
        assert {one["packages"]["msgspec"] for one in told} == {version("msgspec")}

        await ask(client.run(pretend_numpy_version, "0.1", workers=list(found["workers"])[:1]))
        assert "numpy" in str(await raised(client.get_versions, check=True))
        await ask(client.get_versions())  # which only tells

    play_in_processes(scenario)


def pretend_numpy_version(number):
    import numpy

    numpy.__version__ = number


async def raised(function, *args, **kwargs):
    with pytest.raises(ValueError, match="Mismatched versions") as caught:
        await ask(function(*args, **kwargs))
    return caught.value


def test_a_client_is_warned_of_other_versions_as_it_connects():
    async def play():
        async with LocalCluster(
            n_workers=1, processes=False, asynchronous=True, dashboard_address=None
        ) as cluster:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                async with Client(cluster, asynchronous=True):
                    pass
            (worker,) = cluster.scheduler.machine.state.workers.values()
            worker.versions = {**worker.versions, "toolz": "0.1"}
            with pytest.warns(VersionMismatchWarning, match=r"toolz .* 0\.1"):
                async with Client(cluster, asynchronous=True):
                    pass

    asyncio.run(play())


def test_the_facts_of_workers_have_what_programs_look_for(play_in_processes):
    async def scenario(client):
        future = client.submit(bytes, 1_000)
        await ask(wait(future))
        facts = await ask(client.scheduler_info())
        assert facts["n_workers"] == len(facts["workers"]) == 2
        directories = await ask(client.run(lambda dask_worker: dask_worker.local_directory))
        for address, worker in facts["workers"].items():
            assert worker["local_directory"] == directories[address]
            assert worker["last_seen"] > facts["started"]
            assert {"cpu", "memory", "managed_bytes", "task_counts"} <= worker["metrics"].keys()
        assert sum(w["metrics"]["managed_bytes"] for w in facts["workers"].values()) > 1_000
        few = await ask(client.scheduler_info(n_workers=1))
        assert (few["n_workers"], len(few["workers"]), few["total_threads"]) == (2, 1, 2)
        for shown in (facts, await ask(client.who_has()), await ask(client.has_what())):
            assert "<table>" in shown._repr_html_()

    play_in_processes(scenario)


def test_an_asynchronous_client_knows_the_workers_without_waiting():
    async def play():
        async with (
            LocalCluster(
                n_workers=2, processes=False, asynchronous=True, dashboard_address=None
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            facts = client.scheduler_info()
            assert facts["n_workers"] == len(facts["workers"]) == 2
            assert facts["id"] == cluster.scheduler.id
            assert len(client.scheduler_info(n_workers=1)["workers"]) == 1
            assert (await facts)["workers"].keys() == facts["workers"].keys()
            await cluster.scale(1)
            await client.nthreads()  # whatever was said before has come
            assert client.scheduler_info()["n_workers"] == 1

    asyncio.run(play())


def test_a_dump_has_all_that_is_known_and_is_read_again(play, tmp_path):
    async def scenario(client):
        x = client.submit(inc, 1, key="x")
        y = client.submit(inc, None, key="y")
        await ask(wait([x, y]))
        path = str(tmp_path / "dump")
        await ask(client.dump_cluster_state(path))
        await ask(
            client.dump_cluster_state(path, format="yaml", exclude=["run_spec", "config", "npins"])
        )
        await ask(client.dump_cluster_state(f"file://{path}-there"))
        with pytest.raises(ValueError, match="Unsupported format 'text'"):
            await ask(client.dump_cluster_state(path, format="text"))
        for url in (f"{path}.msgpack.gz", f"{path}.yaml", f"file://{path}-there.msgpack.gz"):
            dump = DumpArtefact.from_url(url)
            assert load_dump(url).keys() == dump.keys()
            assert [task["key"] for task in dump.scheduler_tasks_in_state("memory")] == ["x"]
            assert [task["key"] for task in dump.worker_tasks_in_state("memory")] == ["x"]
            (failed,) = dump.scheduler_tasks_in_state("erred")
            assert failed["exception_text"].startswith("TypeError")
            assert dump.scheduler_story("x")["x"][-1][2] == "memory"
            assert dump.worker_story("x")["x"][-1][1] == "finished"
            assert dump.missing_workers() == []
            assert ("run_spec" in failed) == url.endswith("gz")
            (held,) = dump.worker_tasks_in_state("memory")
            assert ("npins" in held) == url.endswith("gz")
        secret = getattr(client.cluster, "token", b"no token").decode()
        assert secret not in (tmp_path / "dump.yaml").read_text()
        DumpArtefact.from_url(f"{path}.yaml").to_yamls(tmp_path / "files")
        assert (tmp_path / "files" / "scheduler" / "tasks.yaml").exists()
        assert len(list((tmp_path / "files").iterdir())) == 3

    play(scenario)


def test_a_scheduler_file_leads_other_clients_to_the_scheduler(play, tmp_path):
    async def scenario(client):
        path = str(tmp_path / "scheduler.json")
        await ask(client.write_scheduler_file(path))
        assert json.loads((tmp_path / "scheduler.json").read_text())["type"] == "Scheduler"
        with pytest.raises(ValueError, match="already set"):
            await ask(client.write_scheduler_file(path))
        if not client.asynchronous:
            with Client(scheduler_file=path) as other:
                assert other.submit(inc, 1).result() == 2

    play(scenario)


def test_hardware_is_measured(play_in_processes):
    async def scenario(client):
        found = await ask(client.benchmark_hardware())
        assert list(found) == ["disk", "memory", "network"]
        for speeds in found.values():
            assert len(speeds) >= 5
            assert all(speed > 0 for speed in speeds.values())

    play_in_processes(scenario)


def test_a_scheduler_in_this_process_can_be_asked_by_upstream_s_names(tmp_path):
    async def play():
        dump = ClusterDump(str(tmp_path / "last"))
        async with (
            LocalCluster(
                n_workers=1, processes=False, asynchronous=True, dashboard_address=None
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            scheduler = cluster.scheduler
            await client.register_plugin(dump)
            future = client.submit(held_up, 1, key="slow")
            await started()
            ((_, stacks),) = (await scheduler.get_call_stack(["slow"])).items()
            assert any("held_up" in frame for frame in stacks["slow"])
            assert scheduler.versions()["packages"].keys() >= {"dask", "python"}
            assert scheduler.identity(n_workers=0)["n_workers"] == 1
            state = await scheduler.get_cluster_state(exclude=["config"])
            assert state["scheduler"]["tasks"]["slow"]["state"] == "processing"
            assert [list(told["executing"]) for told in state["workers"].values()] == [["slow"]]
            MAY_END.set()
            await future
            told = scheduler.story("slow")
            assert [entry[1:3] for entry in told][-1] == ("processing", "memory")
            assert scheduler.story(told[0][-2])[0] == told[0] == scheduler.transition_log[0]
            (worker,) = scheduler.workers.values()
            assert worker.versions["packages"]["dask"] == dask.__version__
        last = DumpArtefact.from_url(str(tmp_path / "last.msgpack.gz"))
        assert len(last["workers"]) == len(last["scheduler"]["workers"]) == 1
        assert last.missing_workers() == []

    asyncio.run(play())
