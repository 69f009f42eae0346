"""What shoal offers to the tests of others: it does what it says, and fails when it should."""

import asyncio
import inspect
import io
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import pytest

from shoal import Client, Future, Scheduler
from shoal.compat.security import Security
from shoal.errors import UnsupportedOption
from shoal.observe.plugins.collecting import CollectTaskMetaDataPlugin
from shoal.testing.blocking import (
    BlockedExecute,
    BlockedGatherDep,
    BlockedGetData,
    BlockedInstantiateNanny,
    BlockedKillNanny,
    TaskStateMetadataPlugin,
    UnhashableCallable,
)
from shoal.testing.bodies import inc, map_varying, slowidentity, throws, varying
from shoal.testing.clusters import end_cluster, gen_cluster, gen_test
from shoal.testing.fixtures import (
    a,
    b,
    c,
    cleanup,
    client,
    cluster_fixture,
    loop,
    loop_in_thread,
    s,
    tls_client,
    tls_cluster,
)
from shoal.testing.leaks import check_instances, check_process_leak, clean, reset_config
from shoal.testing.stories import assert_story
from shoal.testing.surroundings import get_cert, new_config_file, wait_for_log_line
from shoal.testing.watching import (
    async_poll_for,
    captured_logger,
    ensure_no_new_clients,
    poll_for,
    raises_with_cause,
    wait_for_state,
)

__all__ = [
    "a",
    "b",
    "c",
    "cleanup",
    "client",
    "cluster_fixture",
    "loop",
    "loop_in_thread",
    "s",
    "tls_client",
    "tls_cluster",
]


@gen_cluster(client=True)
async def test_a_test_is_given_a_client_a_scheduler_and_workers(c, s, a, b) -> None:  # type: ignore[no-untyped-def]
    assert isinstance(c, Client)
    assert sorted(s.workers) == sorted([a.address, b.address])
    assert (a.nthreads, b.nthreads) == (1, 2)
    future = c.submit(inc, 1, workers=[b.address])
    assert isinstance(future, Future)
    assert await future == 2
    await wait_for_state(future.key, "memory", s)
    assert future.key in b.data


@pytest.mark.parametrize("number", [1, 2])
@gen_cluster(nthreads=[("127.0.0.1", 3, {"name": "mine"})], scheduler="inproc://")
async def test_parameters_follow_the_cluster(s, worker, number) -> None:  # type: ignore[no-untyped-def]
    assert number in (1, 2)
    assert worker.name == "mine"
    assert s.address.startswith("inproc://")


def test_pytest_sees_only_the_arguments_that_are_left() -> None:
    @gen_cluster(client=True)
    async def some(c, s, *workers, extra) -> None:  # type: ignore[no-untyped-def]
        assert extra

    assert list(inspect.signature(some).parameters) == ["extra"]


def test_a_report_names_the_file_of_the_test_not_of_the_decorator() -> None:
    @gen_cluster()
    async def some(s, a, b) -> None:  # type: ignore[no-untyped-def]
        pass

    assert inspect.unwrap(some).__code__.co_filename == __file__  # what pytest looks at


def test_a_test_that_takes_too_long_is_ended() -> None:
    @gen_cluster(nthreads=[], timeout=0.05)
    async def endless(s) -> None:  # type: ignore[no-untyped-def]
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        endless()


def test_a_failure_inside_of_a_test_comes_out() -> None:
    @gen_test()
    async def failing() -> None:
        throws(1)

    with pytest.raises(RuntimeError, match="hello"):
        failing()


def test_wrong_uses_of_the_decorators_are_refused() -> None:
    with pytest.raises(RuntimeError, match="async def"):
        gen_cluster()(lambda s: None)
    with pytest.raises(TypeError, match="parentheses"):
        gen_test(lambda: None)  # type: ignore[arg-type]


def test_fixtures_give_a_cluster_of_processes(c, s, a, b) -> None:  # type: ignore[no-untyped-def]
    assert set(c.nthreads()) == {a["address"], b["address"]}
    assert c.scheduler_info()["address"] == s["address"]
    assert a["proc"]().pid != b["proc"]().pid


def test_a_thread_that_stays_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.testing.leaks.GRACE_SECONDS", 0.01)
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="shoal-forgotten")
    with pytest.raises(AssertionError, match="shoal-forgotten"), clean():
        thread.start()
    end.set()
    thread.join()


def test_a_logger_is_listened_to_under_its_old_name() -> None:
    logger = logging.getLogger("shoal.scheduler")
    before = logger.handlers[:], logger.level, logger.propagate
    with captured_logger("distributed.scheduler") as log:
        logger.info("heard")
    assert log.getvalue() == "heard\n"
    assert (logger.handlers, logger.level, logger.propagate) == before


def test_polling_ends_with_the_condition_or_with_the_time() -> None:
    answers = iter([False, False, True])
    poll_for(lambda: next(answers), timeout=5, period=0)
    asyncio.run(async_poll_for(lambda: True))
    failed = []
    with pytest.raises(AssertionError, match="within 0 s"):
        poll_for(lambda: False, timeout=0, fail_func=lambda: failed.append(1), period=0)
    assert failed == [1]


def test_causes_are_matched_one_by_one() -> None:
    def fail() -> None:
        try:
            throws(1)
        except RuntimeError as error:
            raise ValueError("outer") from error

    with raises_with_cause(ValueError, "outer", RuntimeError, "hello"):
        fail()
    with (
        pytest.raises(RuntimeError, match="hello"),  # as with one that nobody expects
        raises_with_cause(ValueError, None, KeyError, None),
    ):
        fail()


def test_varying_functions_do_in_turn_what_they_were_told() -> None:
    function = varying([ZeroDivisionError("one"), 2])
    with pytest.raises(ZeroDivisionError):
        function()
    assert function() == 2
    with pytest.raises(IndexError, match="2 times"):
        function()
    call, arguments = map_varying([[1], [2]])
    assert [call(argument) for argument in arguments] == [1, 2]
    assert slowidentity(1, delay=0) == 1
    assert slowidentity(1, 2, delay=0) == (1, 2)


def test_a_child_process_that_stays_is_noticed_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(AssertionError, match="child processes"),
        check_process_leak(check_timeout=0),
    ):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.wait(5) != 0
    assert child.stdin is not None
    child.stdin.close()


def test_a_default_client_that_stays_is_noticed(cleanup: None) -> None:
    with pytest.raises(AssertionError, match="a client was left behind"), check_instances():
        left = Client(processes=False, n_workers=1, dashboard_address=None)
    left.close()


def test_configuration_that_a_test_sets_is_undone() -> None:
    with clean():
        dask.config.config["shoal-test"] = 1
    assert "shoal-test" not in dask.config.config
    dask.config.config["shoal-test"] = 1
    reset_config()
    assert "shoal-test" not in dask.config.config
    before = dict(os.environ)
    with new_config_file({"shoal-test": {"x": 1}}):
        code = "import dask; print(dask.config.get('shoal-test.x'))"
        assert subprocess.check_output([sys.executable, "-c", code]) == b"1\n"
    assert dict(os.environ) == before


def test_a_client_that_was_begun_and_ended_is_a_new_one() -> None:
    with ensure_no_new_clients():
        pass
    with pytest.raises(AssertionError, match="1 default clients"), ensure_no_new_clients():
        Client(processes=False, n_workers=1, dashboard_address=None).close()


def test_a_story_is_held_against_what_is_expected() -> None:
    now = time.time()
    sooner = now - 1
    story = [("a", "waiting", "s1", sooner), ("b", {1, 2}, "s2", now), ("a", "memory", "s3", now)]
    assert_story(story, [("a", "waiting"), ("a", "memory", "s3", now)])
    assert_story(story, [("b", lambda found: 2 in found)])
    with pytest.raises(AssertionError, match="not told, or not in its turn"):
        assert_story(story, [("a", "memory"), ("a", "waiting")])
    with pytest.raises(AssertionError, match="3 entries instead of 1"):
        assert_story(story, [("b", {1, 2})], strict=True)
    with pytest.raises(AssertionError, match="after what came later"):
        assert_story(story[::-1], [])
    assert_story(story[::-1], [("a", "memory")], ordered_timestamps=False)


def test_a_line_of_a_programs_output_is_waited_for() -> None:
    output = io.BytesIO(b"one\ntwo\nthree\n")
    assert wait_for_log_line(b"wo", output) == b"two\n"
    with pytest.raises(AssertionError, match="in none of 1 lines"):
        wait_for_log_line(b"four", output)


def test_certificates_are_where_the_tests_of_distributed_are() -> None:
    with pytest.raises(FileNotFoundError, match=r"no-such\.pem"):
        get_cert("no-such.pem")


LEAVING = """
import pytest

kept = []

def test_tidy():
    open(__file__).close()

def test_untidy():
    kept.append(open(__file__))

@pytest.mark.leaking("fds")
def test_allowed():
    kept.append(open(__file__))
"""


def test_what_is_left_behind_is_counted(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_leaving.py").write_text(LEAVING)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "shoal.testing.pytest_leaks"]
        command += ["-p", "no:cacheprovider", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    counted = run("--leaks=fds")
    assert "test_untidy left behind: 1 fds" in counted.stdout
    assert "3 passed, 1 error" in counted.stdout
    assert "--leaks=luck: not one of fds" in run("--leaks=luck").stderr
    assert run().returncode == 0


class AService:
    """What can be closed."""

    def __init__(self, error=None):
        self.error, self.is_closed = error, False

    async def close(self):
        self.is_closed = True
        if self.error is not None:
            raise self.error


def test_a_worker_that_does_not_close_keeps_no_scheduler_open():
    scheduler, fine = AService(), AService()
    with pytest.raises(LookupError, match="not closed"):
        asyncio.run(end_cluster(scheduler, [AService(LookupError("not closed")), fine]))
    assert fine.is_closed
    assert scheduler.is_closed


def test_a_state_that_never_comes_is_not_waited_for_without_end():
    class ATask:
        state = "waiting"

    class AServer:
        tasks = {"x": ATask}  # noqa: RUF012

    for key, found in (("x", "waiting"), ("y", "not there")):
        with pytest.raises(AssertionError, match=f"'{key}' is {found}, and not memory"):
            asyncio.run(wait_for_state(key, "memory", AServer, timeout=0.01))


@gen_cluster(client=True, nthreads=[("127.0.0.1", 1)])
async def test_workers_stop_where_a_test_looks(c, s, a) -> None:  # type: ignore[no-untyped-def]
    """Each fetches, gives or begins only once it may, and says that it would."""
    x = c.submit(bytes, 100_000, workers=[a.address])  # too large to come along inline
    async with BlockedGatherDep(s.address) as asking:
        y = c.submit(len, x, workers=[asking.address])
        await asking.in_gather_dep.wait()
        assert not y.done()
        asking.block_gather_dep.set()
        assert await y == 100_000
    async with BlockedGetData(s.address) as giving:
        z = c.submit(bytes, 200_000, workers=[giving.address])
        fetching = asyncio.ensure_future(c.gather(z))
        await giving.in_get_data.wait()
        assert not fetching.done()
        giving.block_get_data.set()
        assert len(await fetching) == 200_000
    async with BlockedExecute(s.address) as busy:
        u = c.submit(inc, 1, workers=[busy.address])
        await busy.in_execute.wait()
        assert not busy.in_execute_exit.is_set()
        busy.block_execute.set()
        await busy.in_execute_exit.wait()
        assert not u.done()
        busy.block_execute_exit.set()
        assert await u == 2


@gen_cluster(client=True)
async def test_plugins_note_how_tasks_fare(c, s, a, b) -> None:  # type: ignore[no-untyped-def]
    noting, fails = CollectTaskMetaDataPlugin(s, "notes"), TaskStateMetadataPlugin()
    s.add_plugin(noting)
    await c.register_plugin(fails)
    fine, failed = c.submit(inc, 1), c.submit(throws, 1)
    await c.gather([fine, failed], errors="skip")
    assert noting.state == {fine.key: "memory", failed.key: "erred"}
    assert noting.metadata.keys() == noting.state.keys()
    assert not noting.keys
    times = {}
    for worker in (a, b):
        times.update(worker.plugins["task-state-metadata"].metadata)
    assert times.keys() == noting.state.keys()
    assert all(0 < each["start_time"] <= each["stop_time"] for each in times.values())


def test_a_nanny_stops_before_it_starts_its_worker_and_before_it_ends_it() -> None:
    async def play() -> None:
        async with Scheduler(port=0) as s:
            starting = BlockedInstantiateNanny(s.address, token=s.token, nthreads=1)
            began = asyncio.ensure_future(starting.start())
            await starting.in_instantiate.wait()
            assert not s.workers
            starting.wait_instantiate.set()
            await began
            assert len(s.workers) == 1
            await starting.close()
            ending = await BlockedKillNanny(s.address, token=s.token, nthreads=1)
            ended = asyncio.ensure_future(ending.kill())
            await ending.in_kill.wait()
            assert ending.is_alive()
            ending.wait_kill.set()
            await ended
            assert not ending.is_alive()
            await ending.close()

    asyncio.run(play())


def test_an_object_without_a_hash_can_be_called() -> None:
    unhashable = UnhashableCallable()
    assert unhashable(1) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(unhashable)


@pytest.fixture
def security() -> Security:
    """In place of the one whose certificates lie beside distributed's own tests."""
    return Security(require_encryption=True, tls_ca_file="ca.pem", tls_client_cert="client.pem")


@pytest.mark.parametrize("fixture", ["tls_cluster", "tls_client"])
def test_fixtures_of_encrypted_clusters_say_that_there_are_none(request, fixture) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnsupportedOption, match="TLS is not supported"):
        request.getfixturevalue(fixture)
