"""A TCP proxy that does to what passes what bad networks do, to each direction by itself.

It has a loop in a thread of its own, so that a test may be blocking or asynchronous, and so that
what it does goes on while the test waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

T = TypeVar("T")

PIECE_NBYTES = 1 << 16
TICKS_PER_SECOND = 20
"""A slow way passes on so many pieces in a second."""

CALL_SECONDS_MAX = 10.0
TURNS = 5
RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: the connection ends by a reset, and not in good order."""


@dataclass
class Way:
    """What happens in one direction, to all connections; set by `Proxy.set`, at any time."""

    delay_seconds: float = 0.0
    """Each piece is passed on so much later; more is on its way meanwhile."""

    bytes_per_second: float = inf

    is_stopped: bool = False
    """Nothing is passed on, and soon nothing is read: whoever sends notices after some 200 kB."""

    is_swallowed: bool = False
    """What comes is read and thrown away: whoever sends notices nothing."""

    is_split: bool = False
    """Byte by byte, each a segment of its own."""

    cut_after: float = inf
    """So many bytes pass, counted since there is the proxy; then both ends are closed."""

    held_after: float = inf
    """So many bytes pass, counted likewise, and then no more until this is set anew."""

    flipped_at: int | None = None
    """Of the byte of this number, counted likewise, one bit is another."""

    nbytes: int = 0
    """How many have passed."""

    _held: list[Future[None]] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def pass_on(self, piece: bytes) -> bytes:
        """The beginning of `piece` that may pass now, once any may; nothing: the way is cut."""
        while self.is_stopped or self.nbytes >= self.held_after:
            self._changed.clear()
            await self._changed.wait()
        limits = [len(piece), self.held_after - self.nbytes, self.cut_after - self.nbytes]
        if self.bytes_per_second < inf:
            limits.append(max(1, self.bytes_per_second // TICKS_PER_SECOND))
        if self.is_split:
            limits.append(1)
        part = piece[: max(0, int(min(limits)))]
        at = -1 if self.flipped_at is None else self.flipped_at - self.nbytes
        if 0 <= at < len(part):
            part = part[:at] + bytes([part[at] ^ 16]) + part[at + 1 :]
        self.nbytes += len(part)
        self._tell_if_held()
        return part

    def changed(self) -> None:
        """Have a look at what is set; on the loop."""
        self._changed.set()

    def when_held(self) -> Future[None]:
        """Done once `held_after` bytes have passed; on the loop."""
        held: Future[None] = Future()
        self._held.append(held)
        self._tell_if_held()
        return held

    def _tell_if_held(self) -> None:
        if self.nbytes >= self.held_after:
            for held in self._held:
                held.set_result(None)
            self._held.clear()


@dataclass(eq=False)
class _Passage:
    """One connection, through the proxy."""

    near: asyncio.StreamWriter
    """To who has dialled."""

    far: asyncio.StreamWriter | None = None
    pumps: list[asyncio.Task[None]] = field(default_factory=list)

    def close(self) -> None:
        for writer in (self.near, self.far):
            if writer is not None:
                writer.close()


def _reset(writer: asyncio.StreamWriter | None) -> None:
    if writer is None:
        return
    with contextlib.suppress(OSError):  # it has ended before
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


class Proxy:
    """Whoever dials `address` talks to `target`, as well as `there` and `back` allow.

    Use it in a `with`; all connections end with it.
    """

    def __init__(self, target: str | None = None) -> None:
        """`target`: `tcp://host:port`; None: it is told later, by `lead_to`."""
        self.there, self.back = Way(), Way()
        """From who dials to the target, and from the target to who has dialled."""
        self.nconnections = 0
        """How many were made so far."""
        self.is_busy = False
        """Whoever dials is let in, and let go of at once."""
        self._server: asyncio.Server | None = None
        self._target = _host_and_port(target) if target else None
        self._passages: set[_Passage] = set()
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, name="shoal-test-proxy")
        self.port: int = self._socket.getsockname()[1]

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def address(self) -> str:
        """Where it can be dialled."""
        return f"tcp://127.0.0.1:{self.port}"

    def lead_to(self, target: str) -> None:
        """Those who dial from now on talk to `target`."""
        self.call(lambda: setattr(self, "_target", _host_and_port(target)))

    def set(self, way: Way, **faults: object) -> None:
        """Change what happens on `way`, for what comes from now on."""
        unknown = [name for name in faults if not hasattr(way, name)]
        assert not unknown, unknown

        def change() -> None:
            for name, value in faults.items():
                setattr(way, name, value)
            way.changed()

        self.call(change)

    def mend(self) -> None:
        """Both ways are good ones again, and whoever dials is let in; what was lost stays so."""
        good = Way()
        for way in (self.there, self.back):
            faults = {name: value for name, value in vars(good).items() if name[0] != "_"}
            del faults["nbytes"]
            self.set(way, **faults)
        self.is_busy = False
        if self._server is None:
            listening = socket.create_server(("127.0.0.1", self.port))
            self._do(asyncio.start_server(self._pass, sock=listening))

    def refuse(self) -> None:
        """Nobody listens any more, until `mend`; connections that there are stay."""
        self._do(self._listen_no_more())

    def hold(self, way: Way, nbytes: int) -> Future[None]:
        """Pass no more than `nbytes` from now on; done once they have passed.

        `set(way, held_after=inf)` ends that.
        """

        def begin() -> Future[None]:
            way.held_after = way.nbytes + nbytes
            way.changed()
            return way.when_held()

        return self.call(begin)

    def reset(self) -> None:
        """End all connections as a crashed machine's peers end them: by a reset to both ends."""

        def end() -> None:
            for passage in list(self._passages):
                _reset(passage.near)
                _reset(passage.far)

        self.call(end)

    def forget_far_ends(self) -> None:
        """All connections are half-open: the target is told of the end, who has dialled is not."""

        def end() -> None:
            for passage in list(self._passages):
                for pump in passage.pumps:
                    pump.cancel()
                _reset(passage.far)

        self.call(end)

    def _do(self, work: Coroutine[Any, Any, asyncio.Server | None]) -> None:
        """Have this done on the proxy's loop; what comes of it is the server that there is."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._server = done.result(CALL_SECONDS_MAX)

    async def _listen_no_more(self) -> None:
        if self._server is not None:
            self._server.close()

    def call(self, function: Callable[[], T]) -> T:
        """Call it on the proxy's loop."""
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(function())
            except BaseException as error:
                outcome.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return outcome.result(CALL_SECONDS_MAX)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = asyncio.start_server(self._pass, sock=self._socket)
        self._server = self._loop.run_until_complete(listening)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end())
        finally:
            self._loop.close()

    async def _end(self) -> None:
        await self._listen_no_more()
        for passage in list(self._passages):
            _reset(passage.near)
            _reset(passage.far)
        for _ in range(TURNS):  # who was accepted just now begins in one of the next turns
            await asyncio.sleep(0)
            running = asyncio.all_tasks() - {asyncio.current_task()}
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        """One connection, from its beginning to its end."""
        if self.is_busy or self._target is None:
            _reset(near)
            return
        passage = _Passage(near)
        self.nconnections += 1
        self._passages.add(passage)
        try:
            far_reader, passage.far = await asyncio.open_connection(*self._target)
            passage.pumps = [
                asyncio.ensure_future(_pump(self.there, reader, passage.far)),
                asyncio.ensure_future(_pump(self.back, far_reader, near)),
            ]
            await asyncio.wait(passage.pumps, return_when=asyncio.FIRST_EXCEPTION)
            if any(pump.cancelled() for pump in passage.pumps):
                await _listen_to(reader)  # half-open, until who has dialled gives up
                _reset(near)
        except OSError:
            _reset(near)  # nobody is there
        except asyncio.CancelledError:
            _reset(near)  # it is all over
        finally:
            for pump in passage.pumps:
                pump.cancel()
            await asyncio.gather(*passage.pumps, return_exceptions=True)
            passage.close()
            self._passages.discard(passage)


async def _listen_to(reader: asyncio.StreamReader) -> None:
    """And never answer."""
    with contextlib.suppress(OSError):
        while await reader.read(PIECE_NBYTES):
            continue


async def _pump(way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes, until it ends or may not go further.

    Raises:
        ConnectionError: either end is gone, or the way is cut.
    """
    loop = asyncio.get_running_loop()
    on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    delivering = asyncio.ensure_future(_deliver(way, on_the_way, writer))
    try:
        while piece := await reader.read(PIECE_NBYTES):
            while piece:
                part = await way.pass_on(piece)
                if not part:
                    on_the_way.put_nowait((loop.time(), b""))
                    await delivering
                    raise ConnectionAbortedError("the way is cut")
                piece = piece[len(part) :]
                on_the_way.put_nowait((loop.time() + way.delay_seconds, part))
                if delivering.done():  # nobody takes it any more
                    await delivering
                if way.bytes_per_second < inf:
                    await asyncio.sleep(len(part) / way.bytes_per_second)
        on_the_way.put_nowait((loop.time() + way.delay_seconds, b""))
        await delivering
        with contextlib.suppress(OSError):
            writer.write_eof()
    finally:
        delivering.cancel()
        await asyncio.gather(delivering, return_exceptions=True)


async def _deliver(
    way: Way, on_the_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
) -> None:
    """Write each piece once its time has come."""
    loop = asyncio.get_running_loop()
    while True:
        due_at, piece = await on_the_way.get()
        if (early := due_at - loop.time()) > 0:
            await asyncio.sleep(early)
        if not piece:
            return
        if not way.is_swallowed:
            writer.write(piece)
            await writer.drain()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return host, int(port)
