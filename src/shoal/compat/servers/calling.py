"""Calls by name over a comm: `send_recv`, and `rpc`, whose every attribute is an operation."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Self

from shoal.comms.errors import CommClosedError
from shoal.compat.comm import core as comms
from shoal.compat.raising import clean_exception, coerce_to_address
from shoal.compat.servers.errors import RPCClosed
from shoal.observe.status import Status


async def pingpong(comm: Any) -> bytes:
    """An operation for those who want to know whether a server is there."""
    return b"pong"


async def send_recv(
    comm: Any,
    *,
    reply: bool = True,
    serializers: Any = None,
    deserializers: Any = None,
    **kwargs: Any,
) -> Any:
    """Send a message, and read its answer.

    Whatever goes wrong on the way, being cancelled included, ends the comm: an answer that comes
    late would be taken for that of another message.

    Args:
        reply: False: there is none, and None is returned.
        serializers, deserializers: families of serialisation there and back.
        kwargs: the message: `op`, its arguments, and `close=True` if the comm is to end with it.

    Raises:
        BaseException: what the operation has raised.
        CommClosedError: the comm ended.
    """
    message = {**kwargs, "reply": reply}
    deserializers = serializers if deserializers is None else deserializers
    if deserializers is not None:
        message["serializers"] = deserializers
    ended = False
    try:
        await comm.write(message, serializers=serializers, on_error="raise")
        response = await comm.read(deserializers=deserializers) if reply else None
        ended = True
    finally:
        del message
        if not ended:
            comm.abort()
        elif kwargs.get("close"):
            await comm.close()
    if isinstance(response, dict) and response.get("status") == "uncaught-error":
        if not comm.deserialize:
            raise Exception(response["exception_text"])
        _, error, trace = clean_exception(**response)
        assert error is not None
        raise error.with_traceback(trace)
    return response


class rpc:  # noqa: N801  # upstream's name, which programs write
    """Operations of one server: `await rpc(address).ping(delay=1)`.

    It keeps the comms that it has made for later calls, and makes another one if all are in use.
    """

    active: ClassVar[weakref.WeakSet[rpc]] = weakref.WeakSet()
    """Those that were made and not closed."""

    def __init__(
        self,
        arg: Any = None,
        comm: Any = None,
        deserialize: bool = True,
        timeout: Any = None,
        connection_args: Any = None,
        serializers: Any = None,
        deserializers: Any = None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            arg: address, or (host, port).
            comm: not used.
            deserialize, timeout: see `comm.connect`.
            connection_args: for the connector.
            serializers, deserializers: see `send_recv`.
        """
        self.comms: dict[Any, bool] = {}  # whether each is free
        self.address = coerce_to_address(arg)
        self.status = Status.running
        self.deserialize, self.timeout = deserialize, timeout
        self.serializers = serializers
        self.deserializers = serializers if deserializers is None else deserializers
        self.connection_args = connection_args or {}
        self.active.add(self)

    def __repr__(self) -> str:
        return f"<rpc to {self.address!r}, {len(self.comms)} comms>"

    async def live_comm(self) -> Any:
        """A comm that nobody else uses until it is given back by `comms[comm] = True`.

        Raises:
            RPCClosed: this was closed.
            OSError: nobody answers there.
        """
        self._require_open()
        for comm in [comm for comm in self.comms if comm.closed()]:
            del self.comms[comm]
        for comm, is_free in self.comms.items():
            if is_free:
                self.comms[comm] = False
                return comm
        comm = await comms.connect(
            self.address, self.timeout, deserialize=self.deserialize, **self.connection_args
        )
        try:
            self._require_open()
        except RPCClosed:  # meanwhile
            comm.abort()
            raise
        comm.name = "rpc"
        self.comms[comm] = False
        return comm

    def _require_open(self) -> None:
        if self.status is Status.closed:
            raise RPCClosed

    def close_comms(self) -> None:
        """End all comms, those in use included."""
        for comm in list(self.comms):
            comm.abort()
        self.comms.clear()

    def __getattr__(self, key: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if key.startswith("__"):  # of Python's own, and no operation
            raise AttributeError(key)

        async def call(**kwargs: Any) -> Any:
            given = {"serializers": self.serializers, "deserializers": self.deserializers, **kwargs}
            comm = None
            try:
                comm = await self.live_comm()
                comm.name = f"rpc.{key}"
                return await send_recv(comm=comm, op=key, **given)
            except (RPCClosed, CommClosedError) as error:
                how = f"using comm {comm!r}" if comm is not None else "before comm was established"
                text = f"Exception while trying to call remote method {key!r} {how}."
                raise _like(error, text) from error
            finally:
                if comm is not None and comm in self.comms:
                    self.comms[comm] = True
                    comm.name = "rpc"

        return call

    async def close_rpc(self) -> None:
        """End all comms; nothing can be called any more."""
        if self.status is not Status.closed:
            self.status = Status.closed
            self.active.discard(self)
            ending, self.comms = list(self.comms), {}
            await asyncio.gather(*(comm.close() for comm in ending), return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: Any) -> None:
        await self.close_rpc()


def _like(error: OSError, text: str) -> OSError:
    """An error of the same kind with another text."""
    return RPCClosed(text) if isinstance(error, RPCClosed) else CommClosedError(text)


class PooledRPCCall:
    """Operations of one server, over the comms of a pool."""

    def __init__(
        self, addr: str, pool: Any, serializers: Any = None, deserializers: Any = None
    ) -> None:
        self.addr, self.pool = addr, pool
        self.serializers = serializers
        self.deserializers = serializers if deserializers is None else deserializers

    def __repr__(self) -> str:
        return f"<pooled rpc to {self.addr!r}>"

    @property
    def address(self) -> str:
        """Of the server."""
        return self.addr

    def __getattr__(self, key: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        if key.startswith("__"):  # of Python's own, and no operation
            raise AttributeError(key)

        async def call(**kwargs: Any) -> Any:
            given = {"serializers": self.serializers, "deserializers": self.deserializers, **kwargs}
            comm = await self.pool.connect(self.addr)
            before, comm.name = comm.name, f"ConnectionPool.{key}"
            try:
                return await send_recv(comm=comm, op=key, **given)
            finally:
                self.pool.reuse(self.addr, comm)
                comm.name = before

        return call

    async def close_rpc(self) -> None:
        """Nothing happens: the comms are the pool's."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: Any) -> None:
        return None
