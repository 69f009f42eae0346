"""The road of a single task with nothing on it: what the wake-ups alone cost.

A few hundred bytes go from a caller to a loop in a second process, to a loop in a third, to a
thread beside that loop, and the whole way back to a loop in a thread of the caller, which wakes it.
These are the hops of `submit` and `result`; no scheduler with a client, a scheduler and workers in
processes of their own, each on a loop, is quicker than this.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from benchmarks.bench import Bench, check
from benchmarks.figures import Figure, percentile
from benchmarks.workloads.latency import PAUSE_SECONDS, WARMUP

MESSAGE = bytes(300)  # about as long as a task's frame
NBYTES_MAX = 4096


async def _middle(left: socket.socket, right: socket.socket) -> None:
    """The scheduler's place: whatever comes on one side goes out on the other."""
    loop = asyncio.get_running_loop()
    end = loop.create_future()

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        piece = source.recv(NBYTES_MAX)
        if piece:
            target.send(piece)
        elif not end.done():
            end.set_result(None)

    loop.add_reader(left, pass_on, left, right)
    loop.add_reader(right, pass_on, right, left)
    await end


async def _far_end(channel: socket.socket) -> None:
    """The worker's place: a thread has it for a moment, then it goes back."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as threads:
        while piece := await loop.sock_recv(channel, NBYTES_MAX):
            channel.send(await loop.run_in_executor(threads, bytes, piece))


def _run_middle(left: socket.socket, right: socket.socket) -> None:
    with left, right:
        asyncio.run(_middle(left, right))


def _run_far_end(channel: socket.socket) -> None:
    with channel:
        channel.setblocking(False)
        asyncio.run(_far_end(channel))


class _Caller:
    """The client's place: a loop in a thread, and somebody who waits for a future."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._answer: Future[bytes] = Future()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._loop.call_soon_threadsafe(self._loop.add_reader, channel, self._receive)

    def call(self) -> bytes:
        """There and back."""
        self._answer = Future()
        self._channel.send(MESSAGE)
        return self._answer.result()

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.remove_reader, self._channel)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _receive(self) -> None:
        self._answer.set_result(self._channel.recv(NBYTES_MAX))


def relay(bench: Bench) -> Iterator[Figure]:
    """Microseconds there and back, at once and after a pause; see `latency` for what to compare."""
    ours, left = socket.socketpair()
    right, far_end = socket.socketpair()
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_run_middle, args=(left, right)),
        context.Process(target=_run_far_end, args=(far_end,)),
    ]
    for process in processes:
        process.start()
    for passed_on in (left, right, far_end):
        passed_on.close()  # theirs now; what we keep open would keep them from ending
    caller = _Caller(ours)
    try:
        _round_trips(caller, WARMUP, 0.0)
        hot = _round_trips(caller, bench.size, 0.0)
        yield Figure("p50_us", percentile(hot, 50) * 1e6, "us")
        paused = _round_trips(caller, max(bench.size // 5, 10), PAUSE_SECONDS)
        yield Figure("after_pause_p50_us", percentile(paused, 50) * 1e6, "us")
    finally:
        caller.close()
        ours.close()
        for process in processes:
            process.join()


def _round_trips(caller: _Caller, ntimes: int, pause_seconds: float) -> list[float]:
    seconds: list[float] = []
    for _ in range(ntimes):
        if pause_seconds:
            time.sleep(pause_seconds)
        started_at = time.perf_counter()
        answer = caller.call()
        seconds.append(time.perf_counter() - started_at)
        check("relay", answer, MESSAGE)
    return seconds
