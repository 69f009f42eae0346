"""Comms of programs' own: what is written is read, by whoever holds the token and nobody else."""

import asyncio
import contextlib
import gc
import logging
import pickle
import ssl
from contextlib import asynccontextmanager
from typing import ClassVar

import numpy as np
import pytest

from shoal.comms import endpoints
from shoal.comms.admission import AdmissionLimits
from shoal.comms.backends import BACKENDS
from shoal.comms.errors import AddressError, AuthenticationError, CommClosedError, UnknownScheme
from shoal.compat import addresses
from shoal.compat.comm import carried, handshaking, mailbox
from shoal.compat.comm.core import connect, listen
from shoal.compat.comm.errors import FatalCommClosedError, NoPort, NotEncrypted
from shoal.compat.comm.registry import get_backend
from shoal.compat.comm.tcp import TCPListener, convert_stream_closed_error
from shoal.compat.serialising.wrappers import Serialized, ToPickle, to_serialize
from shoal.protocol.families.errors import FamilyNotAllowed
from shoal.protocol.handshake import Keyring
from tests.unit.comms import pipes
from tests.unit.compat.playing import play

OURS = pytest.mark.parametrize("where", ["tcp://127.0.0.1", "inproc://"])
ALL = pytest.mark.parametrize("where", ["tcp://127.0.0.1", "inproc://", "pipe://"])
BACKENDS.setdefault(pipes.SCHEME, pipes.PipeBackend())


@asynccontextmanager
async def pair(where, **kwargs):
    """The comm that dialled, and the one that was accepted."""
    came = asyncio.Queue()
    async with listen(where, came.put, **kwargs) as listener:
        ours = await connect(listener.contact_address, **kwargs)
    theirs = await came.get()
    try:
        yield ours, theirs
    finally:
        ours.abort()
        theirs.abort()
        await asyncio.gather(ours.close(), theirs.close())


@ALL
def test_messages_go_both_ways_in_order_and_both_know_what_the_other_can(where):
    async def scenario():
        async with pair(where) as (ours, theirs):
            for n in range(20):
                await ours.write({"n": n, "values": [1, 2.5, b"x", None]})
            for n in range(20):
                said = await theirs.read()
                assert (said["n"], list(said["values"])) == (n, [1, 2.5, b"x", None])
            await theirs.write("back")
            assert await ours.read() == "back"
            assert ours.peer_address == theirs.local_address
            assert ours.handshake_options == theirs.handshake_options
            assert ours.handshake_options["pickle-protocol"] == pickle.HIGHEST_PROTOCOL
            assert ours.remote_info["address"] == ours.peer_address

    play(scenario)


def test_marked_values_travel_by_their_families_and_stay_apart_if_that_is_asked_for():
    async def scenario():
        array = np.arange(100_000)
        async with pair("tcp://127.0.0.1") as (ours, theirs):
            await ours.write({"x": to_serialize(array)})
            assert ((await theirs.read())["x"] == array).all()
            await ours.write({"x": to_serialize(1)}, serializers=["pickle"])
            with pytest.raises(FamilyNotAllowed):
                await theirs.read(deserializers=["msgpack"])
            await ours.write("the comm goes on")
            assert await theirs.read() == "the comm goes on"
        async with pair("tcp://127.0.0.1", deserialize=False) as (ours, theirs):
            await ours.write({"x": to_serialize(array)})
            assert isinstance((await theirs.read())["x"], Serialized)

    play(scenario)


def test_within_a_process_messages_go_by_reference():
    async def scenario():
        async with pair("inproc://") as (ours, theirs):
            thing = object()
            await ours.write({"x": thing, "y": to_serialize(thing)})
            said = await theirs.read()
            assert said["x"] is said["y"] is thing

    play(scenario)


def test_what_was_written_may_be_changed_at_once():
    async def scenario():
        async with pair("tcp://127.0.0.1") as (ours, theirs):
            array = np.zeros(30_000_000, "u1")
            reading = asyncio.create_task(theirs.read())
            await ours.write({"x": to_serialize(array)})
            array[:] = 1
            assert not (await reading)["x"].any()

    play(scenario)


@OURS
def test_who_writes_waits_while_nobody_reads(where, monkeypatch):
    monkeypatch.setattr(mailbox, "WINDOW_NBYTES", 10_000)
    monkeypatch.setattr(mailbox, "TOLD_NBYTES", 1_000)

    async def scenario():
        async with pair(where) as (ours, theirs):
            written = []

            async def write():
                for n in range(100):
                    await ours.write(bytes(1_000))
                    written.append(n)

            writing = asyncio.create_task(write())
            read = 0
            while len(written) < 5:  # each turn of the loop, until it stands
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(written) < 20
            while read < 100:
                await theirs.read()
                read += 1
            await writing

    play(scenario)


@ALL
def test_after_the_end_of_either_side_both_are_told(where):
    async def scenario():
        async with pair(where) as (ours, theirs):
            reading = asyncio.create_task(theirs.read())
            await ours.close()
            await ours.close()
            for attempt in (reading, theirs.read(), ours.read(), ours.write(1)):
                with pytest.raises(CommClosedError):
                    await attempt
            assert ours.closed()
            assert "closed" in repr(ours)

    play(scenario)


@OURS
def test_what_was_sent_before_the_end_can_still_be_read(where):
    async def scenario():
        async with pair(where) as (ours, theirs):
            await ours.write("last words")
            await ours.close()
            assert await theirs.read() == "last words"

    play(scenario)


def test_a_read_that_is_given_up_ends_the_comm_as_its_answer_would_be_anothers():
    async def scenario():
        async with pair("tcp://127.0.0.1") as (ours, theirs):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ours.read(), 0.001)
            assert ours.closed()
            with pytest.raises(CommClosedError):
                await theirs.read()

    play(scenario)


def test_a_comm_that_nobody_has_is_closed_with_a_line_in_the_log(caplog):
    async def scenario():
        came = asyncio.Queue()
        async with listen("tcp://127.0.0.1", came.put) as listener:
            ours = await connect(listener.contact_address)
            theirs = await came.get()
            del ours
            gc.collect()
            with pytest.raises(CommClosedError):
                await theirs.read()

    with caplog.at_level(logging.WARNING, "shoal.comms"):
        play(scenario)
    assert "Closing dangling comm <TCP" in caplog.text


def test_nobody_is_let_in_without_the_token():
    async def scenario():
        handled = []
        async with TCPListener("127.0.0.1", handled.append) as listener:
            with pytest.raises(AuthenticationError):
                await endpoints.connect(
                    listener.contact_address,
                    Keyring.from_token(b"another"),
                    "client",
                    carried._DECODER,
                    timeout_seconds=5,
                )
        assert handled == []

    play(scenario)


class Careless(pipes.PipeListener):
    """Hands comms on without a word."""

    introduces = False


class CarelessBackend(pipes.PipeBackend):
    listener_class = Careless


def sprung(trap):
    trap.append(1)


class Trap:
    sprung: ClassVar[list[int]] = []

    def __reduce__(self):
        return sprung, (Trap.sprung,)


@pytest.mark.parametrize("backend", [pipes.PipeBackend, CarelessBackend])
def test_a_third_partys_listener_lets_in_nobody_either_and_unpickles_nothing(backend, monkeypatch):
    monkeypatch.setitem(BACKENDS, pipes.SCHEME, backend())

    async def scenario():
        handled = []
        async with listen("pipe://", handled.append) as listener:
            location = listener.contact_address.removeprefix("pipe://")
            stranger = await pipes.PipeConnector().connect(location)
            with contextlib.suppress(CommClosedError):
                await stranger.write(ToPickle(Trap()))
            with pytest.raises(CommClosedError):
                await stranger.read()
            other = await pipes.PipeConnector().connect(location)
            with pytest.raises(AuthenticationError):
                await handshaking.prove(other, Keyring.from_token(b"another"), "client", location)
            assert handled == []
            known = await connect(listener.contact_address)
            for comm in (stranger, other, known, *handled):
                await comm.close()
            assert len(handled) == 1

    play(scenario)
    assert Trap.sprung == []


@pytest.mark.parametrize("backend", [pipes.PipeBackend, CarelessBackend])
def test_a_workers_key_is_no_leave_to_have_the_scheduler_unpickle(backend, monkeypatch):
    monkeypatch.setitem(BACKENDS, pipes.SCHEME, backend())
    keys = Keyring.from_token(b"ours")

    async def scenario():
        came = []
        listener = await endpoints.listen(
            "pipe://", keys, lambda role: carried._DECODER, came.append
        )
        worker = await pipes.PipeConnector().connect(listener.address.removeprefix("pipe://"))
        await handshaking.prove(worker, keys, "worker", listener.address)
        await worker.write(ToPickle(Trap()))
        with pytest.raises(CommClosedError):
            await worker.read()
        await worker.close()
        listener.close()
        assert came == []

    play(scenario)
    assert Trap.sprung == []


@pytest.mark.parametrize("backend", [pipes.PipeBackend, CarelessBackend])
def test_few_strangers_may_stand_at_a_third_partys_listener_and_none_once_it_stops(
    backend, monkeypatch, caplog
):
    monkeypatch.setitem(BACKENDS, pipes.SCHEME, backend())
    monkeypatch.setattr(handshaking, "STRANGERS", AdmissionLimits(unauthenticated_per_host_max=2))

    async def scenario():
        async with listen("pipe://", print) as listener:
            location = listener.contact_address.removeprefix("pipe://")
            strangers = [await pipes.PipeConnector().connect(location) for _ in range(3)]
            with pytest.raises(CommClosedError):
                await strangers[2].read()
            assert not strangers[0].closed()
        for stranger in strangers[:2]:
            with pytest.raises(CommClosedError):
                await stranger.read()
        for stranger in strangers:
            await stranger.close()

    play(scenario)
    assert "too many others" in caplog.text


def test_a_peer_of_a_third_party_that_talks_nonsense_is_no_bug_of_ours(monkeypatch):
    monkeypatch.setitem(BACKENDS, pipes.SCHEME, pipes.PipeBackend())
    keys = Keyring.from_token(b"ours")

    async def scenario():
        over = asyncio.Event()

        async def babble(reader, writer):
            comm = pipes.Pipe(reader, writer, "pipe://somebody:1", True)
            with contextlib.suppress(CommClosedError):
                await comm.write("nonsense")
                while True:
                    await comm.read()
            await comm.close()
            over.set()

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        with pytest.raises(OSError, match="something else"):
            await endpoints.connect(
                f"pipe://{host}:{port}", keys, "worker", carried._DECODER, timeout_seconds=5
            )
        await over.wait()
        server.close()

    play(scenario)


class Unreachable(pipes.PipeConnector):
    """The system gives up by itself, once."""

    failures = 1

    async def connect(self, address, deserialize=True, **arguments):
        if self.failures:
            self.failures -= 1
            raise TimeoutError("no route to it for so long")
        return await super().connect(address, deserialize, **arguments)


def test_an_attempt_that_ends_before_the_deadline_is_followed_by_another(monkeypatch):
    connector = Unreachable()
    backend = pipes.PipeBackend()
    monkeypatch.setattr(backend, "get_connector", lambda: connector)
    monkeypatch.setitem(BACKENDS, pipes.SCHEME, backend)

    async def scenario():
        async with listen("pipe://", answer) as listener:
            comm = await connect(listener.contact_address)
            await comm.write("there")
            assert await comm.read() == "there"
            with pytest.raises(CommClosedError):
                await comm.read()
            await comm.close()

    play(scenario)


async def answer(comm):
    """Says back what it hears, once."""
    await comm.write(await comm.read())
    await comm.close()


def test_small_messages_nobody_reads_count_for_more_than_their_bytes(monkeypatch):
    monkeypatch.setattr(mailbox, "WINDOW_NBYTES", 100_000)
    monkeypatch.setattr(mailbox, "TOLD_NBYTES", 10_000)

    async def scenario():
        async with pair("tcp://127.0.0.1") as (ours, theirs):
            written = []

            async def write():
                for n in range(1_000):
                    await ours.write(n)
                    written.append(n)

            writing = asyncio.create_task(write())
            while len(written) < 50:  # each turn of the loop, until it stands
                await asyncio.sleep(0)
            for _ in range(2_000):
                await asyncio.sleep(0)
            assert len(written) < 200
            for n in range(1_000):
                assert await theirs.read() == n
            await writing

    play(scenario)


def test_listeners_are_found_later_and_never_where_there_is_none():
    async def scenario():
        where = f"tcp://127.0.0.1:{unused_port()}"
        early = asyncio.create_task(connect(where))
        async with listen(where, lambda comm: comm.close()):
            comm = await early
            with pytest.raises(CommClosedError):
                await comm.read()
        with pytest.raises(OSError, match="Timed out trying to connect to inproc://nobody"):
            await connect("inproc://nobody", timeout=0.02)

    play(scenario)


def unused_port():
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def test_encryption_that_is_required_is_refused_and_unknown_schemes_are_named():
    async def scenario():
        with pytest.raises(NotEncrypted, match="encryption required"):
            await connect("tcp://127.0.0.1:1", require_encryption=True)
        with pytest.raises(NotEncrypted):
            listen("tcp://127.0.0.1", print, require_encryption=True)
        with pytest.raises(UnknownScheme):
            await connect("nothing://x")

    play(scenario)
    with pytest.raises(UnknownScheme, match="known schemes"):
        get_backend("nothing")


def test_a_backend_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "carrying_udp.py").write_text("def backend():\n    return 'the backend'\n")
    told = tmp_path / "carrying_udp-1.0.dist-info"
    told.mkdir()
    (told / "entry_points.txt").write_text(
        "[distributed.comm.backends]\nudp = carrying_udp:backend\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(BACKENDS, "udp", raising=False)
    assert get_backend("udp") == "the backend"
    del BACKENDS["udp"]


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, ""),
        ({"host": "h"}, "tcp://h:0"),
        ({"port": 5}, "tcp://:5"),
        ({"host": "tcp://1.2.3.4:7"}, "tcp://1.2.3.4:7"),
        ({"interface": "lo", "port": "5"}, "tcp://127.0.0.1:5"),
        ({"protocol": "inproc"}, "inproc://"),
        ({"protocol": "tls", "port": 1}, "tls://:1"),
        ({"host": "[::1]", "port": 3}, "tcp://[::1]:3"),
    ],
)
def test_arguments_of_users_become_an_address(given, address):
    assert addresses.address_from_user_args(**given) == address


def test_a_port_that_is_given_twice_is_refused_and_lists_give_an_address_each():
    with pytest.raises(ValueError, match="given twice"):
        addresses.address_from_user_args(host="1.2.3.4:9", port=5)
    found = addresses.addresses_from_user_args(port=[1, 2], protocol=["tcp", "tls"])
    assert found == ["tcp://:1", "tls://:2"]


def test_addresses_of_each_scheme_tell_what_they_have():
    near = addresses.get_local_address_for
    assert near("tcp://127.0.0.1:80") == "tcp://127.0.0.1"
    assert near("pipe://127.0.0.1:80") == "pipe://127.0.0.1:0"
    assert near("inproc://x") != near("inproc://x")
    assert addresses.get_address_host_port("pipe://a:5") == ("a", 5)
    with pytest.raises(AddressError):
        addresses.get_address_host_port("inproc://a/b/c")
    with pytest.raises(NoPort):
        get_backend("inproc").get_address_host_port("a/b/c")


@pytest.mark.parametrize(
    ("behind", "text"),
    [(None, "RuntimeError: ended"), (OSError(5, "broken"), r"OSError: \[Errno 5\] broken")],
)
def test_a_stream_that_has_ended_is_a_comm_that_is_closed(
    behind: Exception | None, text: str
) -> None:
    ended = RuntimeError("ended")
    ended.real_error = behind  # type: ignore[attr-defined]  # as tornado's have it
    with pytest.raises(CommClosedError, match=f"^in the comm: {text}$") as caught:
        convert_stream_closed_error("the comm", ended)
    assert caught.value.__cause__ is (behind or ended)
    assert type(caught.value) is CommClosedError


def test_a_certificate_that_the_peer_does_not_know_is_worth_no_other_attempt() -> None:
    error = ssl.SSLError()
    error.reason = "TLSV1_ALERT_UNKNOWN_CA"
    with pytest.raises(FatalCommClosedError, match="in the comm: SSLError"):
        convert_stream_closed_error("the comm", error)
