"""The small functions that old programs import: they do what their names have always said."""

import asyncio
import functools
import logging
import operator
import pickle
import socket
import threading
from collections.abc import Iterator

import pytest

from shoal.comms.errors import AddressError
from shoal.compat import addresses, commanding, files, functions, pickling, system
from shoal.compat.error_logging import log_errors


@pytest.mark.parametrize(
    ("address", "parts", "host"),
    [
        ("tcp://127.0.0.1:80", ("tcp", "127.0.0.1:80"), "127.0.0.1"),
        ("host:80", ("tcp", "host:80"), "host"),
        ("tls://[::1]:80", ("tls", "[::1]:80"), "::1"),
    ],
)
def test_addresses_are_taken_apart_and_put_together(
    address: str, parts: tuple[str, str], host: str
) -> None:
    assert addresses.parse_address(address) == parts
    assert addresses.normalize_address(address) == addresses.unparse_address(*parts)
    assert addresses.get_address_host(address) == host
    assert addresses.get_address_host_port(address) == (host, 80)
    assert addresses.unparse_host_port(host, 80) == parts[1]


def test_addresses_that_make_no_sense_are_refused() -> None:
    with pytest.raises(AddressError, match="no scheme"):
        addresses.parse_address("host:80", strict=True)
    with pytest.raises(TypeError, match="int"):
        addresses.parse_address(80)  # type: ignore[arg-type]
    with pytest.raises(AddressError, match="no port"):
        addresses.get_address_host_port("inproc://name")
    assert addresses.parse_host_port("host", 8786) == ("host", 8786)
    assert addresses.unparse_host_port("host") == "host"


def test_names_of_hosts_become_numbers() -> None:
    assert addresses.resolve_address("tcp://localhost:80") in (
        "tcp://127.0.0.1:80",
        "tcp://[::1]:80",
    )
    assert addresses.resolve_address("inproc://name") == "inproc://name"
    assert functions.ensure_ip("127.0.0.1") == "127.0.0.1"
    assert functions.get_ip().count(".") == 3


@pytest.fixture
def elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    if not loop.is_closed():
        # What was cancelled ends in the turn after; a loop that stops before would leave it there.
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def add(x: int, y: int = 0) -> int:
    return x + y


def test_sync_waits_for_a_coroutine_of_another_thread(
    elsewhere: asyncio.AbstractEventLoop,
) -> None:
    assert functions.sync(elsewhere, add, 1, y=2) == 3
    assert functions.sync(elsewhere, asyncio.get_running_loop) is elsewhere  # it is called there
    with pytest.raises(TimeoutError):
        functions.sync(elsewhere, asyncio.Event().wait, callback_timeout="1 ms")

    async def wait_for_itself() -> None:
        functions.sync(asyncio.get_running_loop(), add, 1)

    with pytest.raises(RuntimeError, match="on the loop"):
        asyncio.run(wait_for_itself())


def test_a_deadline_passes_once_and_nothing_has_no_deadline() -> None:
    soon, never = functions.Deadline.after(0), functions.Deadline.after()
    assert soon.expired
    assert soon.remaining == 0
    assert not never.expired
    assert never.remaining is never.duration is None
    later = functions.Deadline.after(1000)
    assert later.remaining is not None
    assert 900 < later.remaining <= 1000


def test_coroutine_functions_are_recognised_inside_of_partials() -> None:
    assert functions.iscoroutinefunction(functools.partial(add, 1))
    assert not functions.iscoroutinefunction(len)


def test_loops_of_ones_own_making_are_run() -> None:
    assert functions.asyncio_run(add(1, 2), loop_factory=asyncio.new_event_loop) == 3
    assert functions.get_loop_factory() is None


def test_ports_are_read_and_found() -> None:
    assert functions.parse_ports(None) == [None]
    assert functions.parse_ports(23) == functions.parse_ports("23") == [23]
    assert functions.parse_ports("23:25") == [23, 24, 25]
    assert functions.parse_ports([1, 2]) == [1, 2]
    with pytest.raises(ValueError, match="port_stop must be greater"):
        functions.parse_ports("25:23")
    with pytest.raises(TypeError, match="range"):
        functions.parse_ports(2.5)  # type: ignore[arg-type]
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", functions.open_port("127.0.0.1")))


def test_terms_arguments_sizes_and_texts() -> None:
    assert functions.import_term("operator.add") is operator.add
    assert functions.import_term("operator") is operator
    assert functions.has_arg(add, "y")
    assert not commanding.has_keyword(add, "z")
    assert files.nbytes(b"abc") == files.nbytes(memoryview(b"abc")) == 3
    assert functions.is_valid_xml("<a><b/></a>")
    with functions.tmp_text("name.txt", "words") as path, open(path) as opened:
        assert opened.read() == "words"


def test_what_a_function_raises_is_logged_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    @log_errors
    def fail() -> None:
        raise ValueError("one")

    @log_errors
    async def fail_later() -> None:
        raise ValueError("two")

    with caplog.at_level(logging.ERROR, "shoal"):
        with pytest.raises(ValueError, match="one"):
            fail()
        with pytest.raises(ValueError, match="two"):
            asyncio.run(fail_later())
    assert len(caplog.records) == 2


def test_pickles_hold_functions_and_give_away_buffers() -> None:
    assert pickling.loads(pickling.dumps(lambda x: x + 1))(1) == 2
    buffers: list[pickle.PickleBuffer] = []
    stream = pickling.dumps(pickle.PickleBuffer(bytearray(b"abc")), buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert bytes(pickling.loads(stream, buffers=buffers)) == b"abc"


def test_constants_describe_this_system() -> None:
    assert [system.LINUX, system.MACOS, system.WINDOWS].count(True) == 1
    assert 0 < system.MEMORY_LIMIT == system.memory_limit()


def test_descriptions_of_files_can_be_pickled_though_arrow_forgot() -> None:
    filesystems = pytest.importorskip("pyarrow.fs")
    info = filesystems.FileInfo("a/b", filesystems.FileType.File, size=3, mtime_ns=5)
    back = pickling.loads(pickling.dumps([info]))[0]
    assert (back.path, back.type, back.size, back.mtime_ns) == ("a/b", info.type, 3, 5)


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 1.5), (2, 13.5), (5, 20.0), (5000, 20.0)])
def test_pauses_between_attempts_grow_up_to_a_limit(attempt, seconds) -> None:
    assert functions.exponential_backoff(attempt, 1.5, 3.0, 20.0) == seconds
