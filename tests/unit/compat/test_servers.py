"""Servers of programs' own, and calls by name to them."""

import asyncio
import pickle
from contextlib import asynccontextmanager, suppress

import pytest

from shoal.comms.authority import Authority
from shoal.comms.errors import AuthenticationError, CommClosedError, ConnectError
from shoal.compat.comm import core as comms
from shoal.compat.comm.keys import keys_of_caller
from shoal.compat.servers.calling import pingpong, rpc, send_recv
from shoal.compat.servers.errors import NotAStatus, NotListening, RPCClosed, ServerFailed
from shoal.compat.servers.pool import ConnectionPool, PoolClosed
from shoal.compat.servers.server import Server
from shoal.observe.status import Status
from shoal.protocol.handshake import Keyring
from tests.unit.compat.playing import play

EVERYWHERE = pytest.mark.parametrize("where", ["tcp://127.0.0.1:0", "inproc://"])


@asynccontextmanager
async def serving(handlers, where="tcp://127.0.0.1:0", **kwargs):
    """A server that listens."""
    async with Server(handlers, **kwargs) as server:
        await server.listen(where)
        yield server


def divide(x, y):
    return x / y


class Held:
    """An operation that lasts until it may end."""

    def __init__(self):
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.was_cancelled = False

    async def __call__(self):
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return "done"


# --- calls -----------------------------------------------------------------------------------


@EVERYWHERE
def test_values_and_errors_come_back(where):
    async def scenario():
        async with serving({"divide": divide, "ping": pingpong}, where) as server:
            async with rpc(server.address) as remote:
                assert await remote.divide(x=1, y=2) == 0.5
                assert await remote.ping() == b"pong"
                assert await remote.echo(data={"a": {"b": 1}}) == {"a": {"b": 1}}
                assert (await remote.identity())["type"] == "Server"
                with pytest.raises(ZeroDivisionError):
                    await remote.divide(x=1, y=0)
                with pytest.raises(AttributeError, match="answers to: connection_stream, divide"):
                    await remote.multiply(x=1, y=0)
                assert len(remote.comms) == 1  # one was enough, whatever it was told
            assert remote.status is Status.closed
            with pytest.raises(RPCClosed, match="before comm was established"):
                await remote.ping()

    play(scenario)


@EVERYWHERE
def test_what_makes_no_sense_is_answered_and_the_comm_goes_on(where):
    async def scenario():
        async with serving({}, where) as server:
            comm = await comms.connect(server.address)
            for nonsense in ("hello", {"x": 1}):
                await comm.write(nonsense)
                assert "NoOperation" in (await comm.read())["exception_text"]
            assert await send_recv(comm, op="echo", data=1) == 1
            await comm.close()

    play(scenario)


def test_a_call_that_is_cancelled_ends_its_comm():
    """Else its answer would be taken for that of the next call."""

    async def scenario():
        held = Held()
        async with serving({"held": held}) as server:
            comm = await comms.connect(server.address)
            task = asyncio.create_task(send_recv(comm, op="held"))
            await held.begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert comm.closed()
            held.may_end.set()

    play(scenario)


def test_who_wants_no_answer_has_none_and_may_end_the_comm():
    async def scenario():
        said = []
        async with serving({"note": lambda x: said.extend([x])}) as server:
            comm = await comms.connect(server.address)
            assert await send_recv(comm, op="note", x=1, reply=False) is None
            assert await send_recv(comm, op="echo", data=2) == 2
            assert said == [1]
            assert await send_recv(comm, op="echo", data=3, close=True) == 3
            assert comm.closed()

    play(scenario)


def test_calls_at_once_have_comms_of_their_own():
    async def scenario():
        helds = [Held(), Held()]

        async def hold(n):
            return await helds[n]()

        async with serving({"hold": hold}) as server, rpc(server.address) as remote:
            tasks = [asyncio.create_task(remote.hold(n=n)) for n in range(2)]
            await asyncio.gather(*(held.begun.wait() for held in helds))
            assert server.incoming_comms_active == 2
            helds[1].may_end.set()
            assert await tasks[1] == "done"
            assert not tasks[0].done()
            helds[0].may_end.set()
            assert await tasks[0] == "done"
            assert server.counters["op"].components[0] == {"hold": 2}

    play(scenario)


def test_nobody_is_let_in_without_the_token():
    async def scenario():
        async with serving({}) as server:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Authority, "published", lambda self, address: None)
                mark = keys_of_caller.set(Keyring.from_token(b"another"))
                try:
                    with pytest.raises(AuthenticationError):
                        await comms.connect(server.address)
                finally:
                    keys_of_caller.reset(mark)
            assert not server.incoming_comms_open

    play(scenario)


# --- servers ---------------------------------------------------------------------------------


def test_a_server_that_closes_lets_operations_end_and_hears_no_more():
    async def scenario():
        held = Held()
        async with serving({"held": held}) as server, rpc(server.address) as remote:
            task = asyncio.create_task(remote.held())
            await held.begun.wait()
            closing = asyncio.create_task(server.close())
            held.may_end.set()
            assert await task == "done"
            await closing
            assert server.status is Status.closed
            with pytest.raises(ConnectError):
                await comms.connect(server.address, timeout=0.1)
            await server.finished()

    play(scenario)


def test_a_server_that_closes_cancels_what_takes_too_long(monkeypatch):
    async def scenario():
        held = Held()
        async with serving({"held": held}) as server:
            comm = await comms.connect(server.address)
            await comm.write({"op": "held"})
            await held.begun.wait()
            await server.close()
            assert held.was_cancelled
            assert not server._ongoing_background_tasks
            with pytest.raises(CommClosedError):
                await comm.read()

    monkeypatch.setattr("shoal.compat.servers.server.GRACE_SECONDS", 0.01)
    play(scenario)


def test_an_operation_that_goes_on_though_it_is_cancelled_keeps_no_server_open(monkeypatch):
    async def scenario():
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def stubborn():
            begun.set()
            while not may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await may_end.wait()

        async with serving({"stubborn": stubborn}) as server:
            comm = await comms.connect(server.address)
            await comm.write({"op": "stubborn"})
            await begun.wait()
            await server.close()
            assert server.status is Status.closed
            with pytest.raises(CommClosedError):
                await comm.read()
            may_end.set()

    monkeypatch.setattr("shoal.compat.servers.server.GRACE_SECONDS", 0.01)
    play(scenario)


def test_an_operation_may_close_its_server():
    async def scenario():
        async with serving({}) as server, rpc(server.address) as remote:
            server.handlers["terminate"] = server.close
            await remote.terminate()
            await server.finished()
            assert server.status is Status.closed

    play(scenario)


def test_a_stream_is_heard_in_order_until_it_ends():
    async def scenario():
        heard = []

        async def slowly(x, extra=None):
            await asyncio.sleep(0)
            heard.append(x)

        handlers = {"slowly": slowly, "now": lambda x: heard.extend([x])}
        async with serving({}, stream_handlers=handlers) as server:
            comm = await comms.connect(server.address)
            await comm.write({"op": "connection_stream"})
            await comm.write([{"op": "slowly", "x": 0}, {"op": "now", "x": 1}])
            await comm.write({"op": "slowly", "x": 2})
            await comm.write({"op": "close-stream"})
            with pytest.raises(CommClosedError):
                await comm.read()
            assert heard == [0, 1, 2]

    play(scenario)


def test_what_is_blocked_is_refused():
    async def scenario():
        async with serving({}, blocked_handlers=["echo"]) as server, rpc(server.address) as remote:
            with pytest.raises(ValueError, match="'echo' handler has been explicitly disallowed"):
                await remote.echo(data=1)

    play(scenario)


def test_what_is_called_at_intervals_and_can_not_be_stopped_keeps_no_server_open():
    async def scenario():
        async with serving({}) as server:
            server.periodic_callbacks["none"] = object()
            await server.close()
            await server.finished()
            assert server.status is Status.closed

    play(scenario)


def test_a_server_that_can_not_start_says_so_and_is_closed():
    class Broken(Server):
        async def start_unsafe(self):
            raise KeyError("no")

    async def scenario():
        server = Broken({})
        with pytest.raises(ServerFailed, match="Broken failed to start") as failed:
            await server
        assert isinstance(failed.value.__cause__, KeyError)
        assert server.status is Status.failed

    play(scenario)


def test_a_server_takes_too_long_to_start():
    class Slow(Server):
        async def start_unsafe(self):
            await asyncio.Event().wait()

    async def scenario():
        server = Slow({})
        server.death_timeout = 0.01
        with pytest.raises(TimeoutError, match="Slow start timed out"):
            await server

    play(scenario)


def test_a_status_is_a_status_and_an_address_comes_with_listening():
    async def scenario():
        server = Server({})
        with pytest.raises(NotAStatus):
            server.status = "running"  # type: ignore[assignment]
        with pytest.raises(NotListening, match="listen"):
            _ = server.address
        await server.close()

    play(scenario)


def test_errors_survive_the_way():
    for error in (NotListening("Server"), ServerFailed("Server"), NotAStatus(1), RPCClosed("x")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


# --- pools -----------------------------------------------------------------------------------


def test_a_pool_keeps_comms_and_has_no_more_than_it_may():
    async def scenario():
        async with ConnectionPool(limit=2) as pool, serving({}) as one, serving({}) as other:
            for server in (one, other, one):
                assert await pool(server.address).echo(data=1) == 1
            assert (pool.open, pool.active) == (2, 0)
            await asyncio.gather(*(pool(one.address).echo(data=n) for n in range(5)))
            assert pool.open <= 2
            pool._validate()
            assert await pool(other.address).echo(data=1) == 1  # which others had to make room for
            pool.remove(other.address)
            pool.remove(one.address)
            comm = await pool.connect(one.address)
            assert not pool.available  # nothing is kept of an address without free comms
            pool.reuse(one.address, comm)

    play(scenario)


def test_a_pool_gives_no_comm_that_has_ended():
    async def scenario():
        async with ConnectionPool() as pool, serving({}) as server:
            comm = await pool.connect(server.address)
            await send_recv(comm, op="echo")
            pool.reuse(server.address, comm)
            (theirs,) = server._comms
            await theirs.close()
            with pytest.raises(CommClosedError):
                await comm.read()
            another = await pool.connect(server.address)
            assert another is not comm
            pool.reuse(server.address, another)
            pool._validate()
            assert pool.open == 1

    play(scenario)


def test_attempts_end_as_the_address_is_removed_or_the_pool_closed(monkeypatch):
    async def scenario():
        begun, forever = asyncio.Event(), asyncio.Event()

        async def dial(*args, **kwargs):
            begun.set()
            await forever.wait()

        monkeypatch.setattr(comms, "connect", dial)
        pool = await ConnectionPool(limit=1)
        for end in (lambda: pool.remove("tcp://a:1"), lambda: asyncio.create_task(pool.close())):
            tasks = [asyncio.create_task(pool.connect("tcp://a:1")) for _ in range(3)]
            await begun.wait()
            begun.clear()
            ending = end()
            for task in tasks:
                with pytest.raises(CommClosedError, match=r"removed|closing"):
                    await task
            if ending is not None:
                await ending
        assert (pool.open, pool.num_connecting) == (0, 0)
        pool._validate()
        with pytest.raises(PoolClosed, match="ConnectionPool is closed"):
            await pool("tcp://a:1").ping()

    play(scenario)


def test_whoever_is_cancelled_as_it_waits_for_a_comm_takes_no_room(monkeypatch):
    async def scenario():
        begun = asyncio.Event()

        async def dial(*args, **kwargs):
            begun.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(comms, "connect", dial)
        async with ConnectionPool(limit=1) as pool:
            task = asyncio.create_task(pool.connect("tcp://a:1"))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)
            pool._validate()
            assert pool.num_connecting == 0

    play(scenario)
