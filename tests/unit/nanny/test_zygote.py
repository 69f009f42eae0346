"""A process that was forked is as if it had been started afresh, and its end is told."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest

from shoal.nanny.errors import CannotFork, ProcessDied
from shoal.nanny.process import ServiceProcess
from shoal.nanny.zygotes import ZygoteProcess
from tests.programs import ROOT, path_with
from tests.unit.nanny.birth import SECONDS_MAX, born, process_of, words_of, zygote

METHODS = ["fork", "spawn"]
LIMIT_NBYTES = 150 * 2**20


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> Any:
    """How processes start in this test."""
    with dask.config.set({"shoal.nanny.start-method": request.param}):
        yield request.param


# --- birth -----------------------------------------------------------------------------------


def test_a_process_has_the_surroundings_of_its_owner_as_they_are_now(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words_of("rest")  # the zygote is there, and has other surroundings
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("/somewhere/else")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "WORD": "\udce4, a byte"}
    umask = os.umask(0o027)
    try:
        words = words_of("describe", environ=environ)
    finally:
        os.umask(umask)
    assert words["environ"] | {"LC_CTYPE": ""} == environ | {"LC_CTYPE": ""}
    assert words["directory"] == str(tmp_path)
    assert words["umask"] == 0o027
    assert words["path"] == sys.path


def test_a_process_has_nothing_of_the_zygote_and_nothing_of_its_siblings(method: str) -> None:
    async def main() -> dict[str, Any]:
        async with born("rest"), born("rest"), born("describe") as process:
            return {**process.words, "pid": process.pid}

    words = asyncio.run(main())
    assert words["argv"] == ["-c"]
    assert "serve" not in words["main"]
    assert words["group"] == words["pid"]  # so Ctrl-C in a terminal does not reach it
    assert words["nthreads"] == 1
    assert words["interrupt"]
    assert words["child_signal"]
    assert not words["numpy"] or "numpy" in sys.modules  # only what its owner has as well
    standard = {"0", "1", "2"}
    others = {n: where for n, where in words["descriptors"].items() if n not in standard}
    assert sorted(where.partition(":")[0] for where in others.values()) == sorted(
        ["socket", os.readlink("/proc/self/fd/2").partition(":")[0]]
    )  # its channel, and our stderr


def test_what_must_differ_between_processes_differs_and_hashes_agree(method: str) -> None:
    async def main() -> list[dict[str, Any]]:
        environ = {**os.environ, "PYTHONHASHSEED": "17"}
        async with born("draw", environ=environ) as one, born("draw", environ=environ) as other:
            return [one.words, other.words]

    one, other = asyncio.run(main())
    assert one["hash"] == other["hash"]
    for name in ("random", "uuid", "folder", "key"):
        assert one[name] != other[name], name


def test_descriptors_are_inherited_under_the_numbers_of_the_document(method: str) -> None:
    async def main(listener: socket.socket) -> dict[str, Any]:
        async with born("describe", inherited=(listener.fileno(),)) as process:
            return dict(process.words)

    with socket.socket() as listener:
        number = listener.fileno()
        target = os.readlink(f"/proc/self/fd/{number}")
        assert asyncio.run(main(listener))["descriptors"][str(number)] == target


def test_it_writes_to_our_standard_streams(method: str, capfd: pytest.CaptureFixture[str]) -> None:
    words_of("print")
    assert capfd.readouterr() == ("to stdout\n", "to stderr\n")


# --- death -----------------------------------------------------------------------------------


def end_of(deed: str, **options: Any) -> tuple[ServiceProcess, ProcessDied]:
    """A process that dies before it is ready, and what is said of that."""

    async def main() -> tuple[ServiceProcess, ProcessDied]:
        process = process_of(deed, **options)
        await process.start()
        with pytest.raises(ProcessDied) as caught:
            await process.ready(SECONDS_MAX)
        await process.finished()
        return process, caught.value

    return asyncio.run(main())


def test_an_exit_code_and_the_last_lines_are_told(method: str) -> None:
    process, error = end_of("exit")
    assert error.death == process.death
    assert (error.death.exit_code, error.death.signal) == (3, "")
    assert error.death.last_lines == "line one\nlast words"
    assert error.death.describe() == "exit code 3"
    assert not process.is_alive()
    assert process.exit_code == 3


def test_a_crash_of_native_code_is_told(method: str) -> None:
    _, error = end_of("crash")
    assert (error.death.exit_code, error.death.signal) == (-signal.SIGSEGV, "SIGSEGV")
    assert error.death.describe() == "killed by SIGSEGV (native code crashed)"


def test_a_process_that_grows_beyond_its_limit_is_killed_and_that_is_told(method: str) -> None:
    _, error = end_of("fill", stays=True, memory_limit_nbytes=LIMIT_NBYTES)
    death = error.death
    assert death.by_memory_limit
    assert death.signal == "SIGKILL"
    assert death.memory_nbytes is not None
    assert death.memory_nbytes > 0.95 * LIMIT_NBYTES
    assert "its memory limit of 150.00 MiB" in death.describe()
    assert "memory_limit=" in str(error)


def test_the_last_resort_can_be_turned_off(method: str) -> None:
    settings = {
        "distributed.worker.memory.terminate": False,
        "distributed.worker.memory.monitor-interval": "1ms",
    }
    with dask.config.set(settings):
        assert words_of("fill", memory_limit_nbytes=LIMIT_NBYTES)["nmegabytes"] == 256


def test_the_end_of_a_process_that_served_is_told_to_who_asked(method: str) -> None:
    ended: list[ServiceProcess] = []

    async def main() -> None:
        async with born("rest", on_end=ended.append) as process:
            process.kill()
            await process.finished()
            assert ended == [process]
            assert process.status == "failed"
            assert process.death is not None
            assert process.death.signal == "SIGKILL"

    asyncio.run(main())


def test_a_process_that_takes_its_leave_is_no_death(method: str) -> None:
    async def main() -> None:
        async with born("rest") as process:
            await process.go({"deed": "rest"})
            process.let_go()
            await process.finished()
            assert process.farewell == {"left": "it was asked to"}
            assert process.death is not None
            assert process.death.is_clean
            assert process.status == "closed"

    asyncio.run(main())


def test_signals_and_looks_after_the_end_reach_nobody(method: str) -> None:
    async def main() -> None:
        async with born("rest") as process:
            process.kill()
            await process.finished()
            process.kill()
            process.terminate()
            process.close_now(0.0)
            assert process.exit_code == -signal.SIGKILL
        assert process.exit_code == -signal.SIGKILL

    asyncio.run(main())


# --- the zygote itself -----------------------------------------------------------------------


def test_one_zygote_serves_all_clusters_and_shrugs_off_an_interrupt() -> None:
    words_of("rest")
    first = zygote()
    os.kill(first.pid, signal.SIGINT)
    words_of("rest")
    assert zygote() is first
    assert os.getpgid(first.pid) != os.getpgid(0)


def test_children_outlive_a_zygote_that_was_killed_and_another_takes_its_place() -> None:
    async def main() -> None:
        async with born("rest") as process:
            first = zygote()
            os.kill(first.pid, signal.SIGKILL)
            async with born("rest"):
                assert zygote().pid != first.pid
            assert process.is_alive()
            process.kill()
            await process.finished()
            assert process.death is not None
            assert process.death.exit_code is None
            assert "not known" in process.death.describe()

    asyncio.run(main())


def test_a_child_that_closes_well_after_its_zygote_is_gone_counts_as_that() -> None:
    async def main() -> None:
        async with born("rest") as process:
            os.kill(zygote().pid, signal.SIGKILL)
            await process.go({"deed": "rest"})
            process.let_go()
            await process.finished()
            assert process.death is not None
            assert process.death.is_clean

    asyncio.run(main())


def test_memory_is_guarded_by_the_owner_when_the_zygote_is_gone() -> None:
    async def main() -> None:
        async with born("rest", stays=True, memory_limit_nbytes=LIMIT_NBYTES) as process:
            os.kill(zygote().pid, signal.SIGKILL)
            await process.go({"deed": "fill"})
            await process.finished()
            assert process.death is not None
            assert process.death.by_memory_limit

    asyncio.run(main())


async def asked_of_a_stopped_one() -> tuple[ZygoteProcess, ServiceProcess, asyncio.Task[None]]:
    """The zygote, the process that it was asked for, and the start of that, which waits."""
    stopped = zygote()
    os.kill(stopped.pid, signal.SIGSTOP)
    process = process_of("rest")
    starting = asyncio.create_task(process.start())
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # its life has begun, and waits for an answer
    return stopped, process, starting


def test_a_zygote_that_dies_while_it_is_asked_is_replaced() -> None:
    async def main() -> None:
        stopped, process, starting = await asked_of_a_stopped_one()
        os.kill(stopped.pid, signal.SIGKILL)
        await starting
        await process.ready(SECONDS_MAX)
        assert zygote() is not stopped
        await process.close(SECONDS_MAX)

    words_of("rest")
    asyncio.run(main())


def test_an_end_is_noticed_even_if_the_zygote_stands_still() -> None:
    async def main() -> None:
        async with born("rest") as process:
            still = zygote()
            os.kill(still.pid, signal.SIGSTOP)
            try:
                process.kill()
                await process.finished()
            finally:
                os.kill(still.pid, signal.SIGCONT)
            assert process.death is not None
            assert process.death.exit_code is None

    asyncio.run(main())


def test_a_start_that_is_given_up_leaves_no_process() -> None:
    async def main() -> None:
        stopped, process, starting = await asked_of_a_stopped_one()
        starting.cancel()
        await asyncio.wait((starting,))
        os.kill(stopped.pid, signal.SIGCONT)
        await process.close(SECONDS_MAX)
        assert not process.is_alive()

    words_of("rest")
    asyncio.run(main())


SITE = "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"


def test_what_has_threads_is_not_forked_but_spawned(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert words_of("rest", environ=environ) == {"address": "here"}
    with (
        dask.config.set({"shoal.nanny.start-method": "fork"}),
        pytest.raises(CannotFork, match=r"runs 2 threads.\n.*start-method is 'fork'"),
    ):
        words_of("rest", environ=environ)


def test_the_last_words_of_an_interpreter_that_does_not_start_are_told_once(
    method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    environ = {**os.environ, "PYTHONHASHSEED": "no number"}
    error = CannotFork if method == "fork" else ProcessDied
    with pytest.raises(error, match="PYTHONHASHSEED must be"):
        words_of("rest", environ=environ)
    assert capfd.readouterr() == ("", "")


# --- whatever dies first ---------------------------------------------------------------------

SCRIPT = """
import asyncio, os, sys
from shoal.nanny import zygotes
from shoal.nanny.bootstrap import kind_of_interpreter
from tests.unit.nanny.birth import process_of, zygote

async def main():
    kind = kind_of_interpreter(os.environ)
    zygotes._zygotes[kind] = zygotes.ZygoteProcess(os.environ, orphan_seconds=0.2)
    process = process_of(sys.argv[2], marks=sys.argv[3])
    await process.start()
    print(zygote().pid, process.pid, flush=True)
    if sys.argv[2] == "rest":
        await process.ready(30)
    if sys.argv[1] == "fork":
        pid = os.fork()
        if pid == 0:
            inherited = zygotes.kept_descriptors()
            process.kill()
            process.close_now(0.0)
            os._exit(len(inherited))
        _, status = os.waitpid(pid, 0)
        print(status, process.is_alive(), process.status, flush=True)
    sys.stdin.readline()
    if sys.argv[1] != "exit":
        await process.close(5)

asyncio.run(main())
"""


def owner(how: str, deed: str, marks: Path) -> subprocess.Popen[str]:
    """A program with one process of a zygote; it ends when it is told to."""
    command = [sys.executable, "-c", SCRIPT, how, deed, str(marks)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path_with(ROOT)},
    )


def processes_named(program: subprocess.Popen[str]) -> list[psutil.Process]:
    """Those whose ids the program says: the zygote, and its child."""
    assert program.stdout is not None
    return [psutil.Process(int(word)) for word in program.stdout.readline().split()]


@pytest.mark.parametrize("how", ["close", "exit"])
def test_a_zygote_never_outlives_the_interpreter(how: str, tmp_path: Path) -> None:
    with owner(how, "rest", tmp_path / "marks") as program:
        mother, _ = processes_named(program)
        output, errors = program.communicate("go\n", timeout=SECONDS_MAX)
        assert (output, errors, program.returncode) == ("", "", 0)
        assert not mother.is_running()


def test_a_zygote_that_is_dismissed_has_closed_what_it_had_and_says_nothing() -> None:
    mother = ZygoteProcess({**os.environ, "PYTHONWARNINGS": "error"})
    _, errors = mother.descriptors
    with os.fdopen(os.dup(errors), "rb") as said:
        mother.dismiss()
        mother.wait(time.monotonic() + SECONDS_MAX)
        assert mother.has_ended()
        assert os.pread(said.fileno(), 10_000, 0) == b""


@pytest.mark.parametrize("deed", ["rest", "stay"])
def test_nothing_outlives_an_owner_that_is_killed(deed: str, tmp_path: Path) -> None:
    with owner("close", deed, tmp_path / "marks") as program:
        family = processes_named(program)
        program.kill()
        _, alive = psutil.wait_procs(family, timeout=SECONDS_MAX)
        assert alive == []
        assert program.communicate()[1] == ""


def test_a_fork_of_the_owner_neither_uses_the_zygote_nor_harms_its_children(
    tmp_path: Path,
) -> None:
    with owner("fork", "rest", tmp_path / "marks") as program:
        processes_named(program)
        output, errors = program.communicate("go\n", timeout=SECONDS_MAX)
        assert (output, errors, program.returncode) == ("0 True running\n", "", 0)
