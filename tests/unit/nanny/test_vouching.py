"""A nanny vouches for a worker that can't say that it lives, and not for one that was stopped."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from shoal.comms import listen
from shoal.nanny.vouching import Vouching, is_executing
from shoal.protocol.codec import Decoder
from shoal.protocol.directions import WorkerToScheduler
from shoal.protocol.handshake import WORKER, Keyring
from shoal.protocol.messages import VouchForWorker

KEYRING = Keyring.from_token(b"a token for tests")
INTERVAL_SECONDS = 0.01
REST_SECONDS = 0.1


class Process:
    """A worker's, as its nanny sees it."""

    address = "tcp://a:1"

    def __init__(self, pid=None, is_there=True):
        self.pid = os.getpid() if pid is None else pid
        self.is_there = is_there

    def is_alive(self):
        return self.is_there


def play(scenario):
    """Run `scenario(vouching, heard)`; a scheduler puts what it hears into the queue."""

    async def work():
        heard = asyncio.Queue()

        def accept(connection):
            connection.start(
                lambda messages, buffers: [heard.put_nowait(m) for m in messages], lambda why: None
            )

        listener = await listen(
            "inproc://", KEYRING, lambda role: Decoder(WorkerToScheduler), accept
        )
        vouching = Vouching(lambda: (listener.address, KEYRING.only(WORKER)), REST_SECONDS)
        try:
            async with asyncio.timeout(30):
                await scenario(vouching, heard)
        finally:
            vouching.end()
            listener.close()
            await listener.wait_closed()

    asyncio.run(work())


def test_a_worker_whose_sign_of_life_is_late_is_vouched_for_again_and_again():
    async def scenario(vouching, heard):
        process = Process()
        vouching.beat(process, INTERVAL_SECONDS)
        assert await heard.get() == VouchForWorker("tcp://a:1", os.getpid())
        assert await heard.get() == VouchForWorker("tcp://a:1", os.getpid())

    play(scenario)


def test_nobody_vouches_for_a_process_that_has_ended():
    async def scenario(vouching, heard):
        vouching.beat(Process(is_there=False), INTERVAL_SECONDS)
        vouching.beat(Process(is_there=False), INTERVAL_SECONDS)
        await asyncio.sleep(0)
        live = Process()
        vouching.beat(live, INTERVAL_SECONDS)
        assert (await heard.get()).pid == live.pid
        assert heard.empty()

    play(scenario)


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    yield process
    process.kill()
    process.communicate()


def test_nobody_vouches_for_a_worker_that_rests(child):
    async def scenario(vouching, heard):
        vouching.beat(Process(child.pid), INTERVAL_SECONDS)
        vouching.beat(Process(child.pid), 0)
        until = time.monotonic() + 5 * REST_SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(0)
        assert heard.empty()

    play(scenario)


def test_a_worker_that_rests_is_vouched_for_if_its_process_does_not():
    """An actor's method, or a thread of a user's, holds the interpreter, and nobody said so."""

    async def scenario(vouching, heard):
        vouching.beat(Process(), 0)
        while heard.empty():  # this process is busy with that
            await asyncio.sleep(0)
        assert await heard.get() == VouchForWorker("tcp://a:1", os.getpid())

    play(scenario)


def test_a_process_that_was_stopped_executes_nothing(child):
    assert is_executing(child.pid)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    assert psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
    assert not is_executing(child.pid)
    child.send_signal(signal.SIGCONT)
    os.waitid(os.P_PID, child.pid, os.WCONTINUED | os.WNOWAIT)
    assert is_executing(child.pid)


def test_a_process_that_is_not_there_executes_nothing():
    assert not is_executing(2**22 + 1)
