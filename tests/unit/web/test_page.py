"""A page's life: bound with its scheduler, served when somebody comes, gone with it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import aiohttp
import dask.config
import pytest

from shoal.scheduler.shell.service import Scheduler
from shoal.testing.clusters import gen_test
from shoal.testing.watching import captured_logger
from shoal.web.addresses import Visitors, bind_page
from shoal.web.plain import PlainServer
from shoal.worker.shell.service import Worker
from tests.programs import printed_by
from tests.unit.web.visitor import say, visit

CLOSE_SECONDS_MAX = 1.0  # a tenth of that on a machine that does nothing else


@asynccontextmanager
async def scheduler(**options: Any) -> AsyncIterator[tuple[Scheduler, int]]:
    """A scheduler with a page on a free port."""
    async with Scheduler(dashboard_address=":0", **options) as served:
        yield served, served.services["dashboard"]


@asynccontextmanager
async def plain_server(served: Scheduler) -> AsyncIterator[int]:
    """What serves where aiohttp is missing."""
    with bind_page("127.0.0.1", 0) as sock:
        server = PlainServer(served, Visitors("127.0.0.1", []))
        await server.start(sock)
        try:
            yield sock.getsockname()[1]
        finally:
            await server.close()


@gen_test()
async def test_a_scheduler_serves_its_page_if_it_is_told_where() -> None:
    """Without, it has none."""
    async with scheduler() as (served, port):
        assert served.http_server.port == port
        assert served.identity()["services"] == {"dashboard": port}
        page = await visit(port, "/status")
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "static/status.js" in page.text
    async with Scheduler() as without:
        assert without.services == {}


@gen_test()
async def test_programs_get_health_and_counts() -> None:
    """Under the routes that they know."""
    async with scheduler() as (_, port):
        health = await visit(port, "/health")
        assert (health.status, health.text) == (200, "ok")
        counts = await visit(port, "/json/counts.json")
        assert counts.headers["content-type"] == "application/json; charset=utf-8"
        assert json.loads(counts.text)["workers"] == 0


@gen_test()
async def test_the_root_leads_to_the_page_wherever_it_is_mounted() -> None:
    """By a relative address, so that a proxy's prefix stays."""
    async with scheduler() as (_, port):
        root = await visit(port, "/")
        assert (root.status, root.headers["location"]) == (302, "status")


@gen_test()
async def test_load_balancers_may_ask_for_the_head_alone() -> None:
    """It has the length of the body, and no body."""
    async with scheduler() as (_, port):
        head = await visit(port, "/status", method="HEAD")
        assert (head.status, head.text) == (200, "")
        assert int(head.headers["content-length"]) > 1000


@pytest.mark.parametrize("path", ["/status", "/health", "/static/nothing.js", "/static/../page.py"])
@gen_test()
async def test_every_answer_says_how_little_it_may_do(path: str) -> None:
    """Also one that there is nothing there."""
    async with scheduler() as (_, port):
        headers = (await visit(port, path)).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "SAMEORIGIN"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@gen_test()
async def test_nothing_can_be_done_through_the_page(method: str) -> None:
    """It has no token, so all that it offers is a look."""
    async with scheduler() as (_, port):
        for path in ("/", "/status", "/live", "/health", "/json/counts.json"):
            assert (await visit(port, path, method=method)).status in (404, 405)


@gen_test()
async def test_a_foreign_name_that_leads_here_is_refused_with_the_way_out() -> None:
    """Unless the configuration knows it."""
    async with scheduler() as (_, port):
        refused = await visit(port, "/status", host="evil.example")
        assert refused.status == 403
        assert "shoal.dashboard.hosts" in refused.text
    with dask.config.set({"shoal.dashboard.hosts": ["hub.example"]}):
        async with scheduler() as (_, port):
            assert (await visit(port, "/health", host="hub.example")).status == 200


@gen_test()
async def test_viewers_are_told_what_is_new() -> None:
    """A worker that joins shows by itself."""
    async with (
        scheduler() as (served, port),
        aiohttp.ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{port}/live") as socket,
    ):
        first = await socket.receive_json(timeout=10)
        assert first["about"]["address"] == served.address
        assert first["totals"]["workers"] == 0
        async with Worker(served.address, nthreads=3, token=served.token):
            then = await socket.receive_json(timeout=10)
            assert then["totals"]["nthreads"] == 3


@gen_test()
async def test_live_figures_are_not_for_other_sites() -> None:
    """A page somewhere else can't listen in through its visitor's browser."""
    async with scheduler() as (_, port), aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(
                f"http://127.0.0.1:{port}/live", headers={"Origin": "http://evil.example"}
            )
        assert refused.value.status == 403


@gen_test()
async def test_a_scheduler_closes_at_once_though_somebody_watches() -> None:
    """The viewer is told."""
    async with Scheduler(dashboard_address=":0") as served, aiohttp.ClientSession() as session:
        port = served.services["dashboard"]
        async with session.ws_connect(f"http://127.0.0.1:{port}/live") as socket:
            await socket.receive_json(timeout=10)
            listening = asyncio.ensure_future(socket.receive(timeout=10))
            began = monotonic()
            await served.close()
            assert monotonic() - began < CLOSE_SECONDS_MAX
            assert (await listening).type is aiohttp.WSMsgType.CLOSE


@gen_test()
async def test_a_scheduler_closes_while_its_page_is_opening() -> None:
    """Whoever came first just finds nobody."""
    async with Scheduler(dashboard_address=":0") as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.services["dashboard"])
        await served.close()
        writer.close()
    with pytest.raises(OSError, match=r"failed|refused"):
        await asyncio.open_connection("127.0.0.1", served.services["dashboard"])


def test_a_page_that_nobody_visits_is_a_socket_and_no_more() -> None:
    """The library that serves it is not even loaded."""
    program = (
        "import asyncio, sys\n"
        "from shoal.scheduler.shell.service import Scheduler\n"
        "async def main():\n"
        "    async with Scheduler(dashboard_address=':0') as scheduler:\n"
        "        assert scheduler.services['dashboard']\n"
        "asyncio.run(main())\n"
        "print('aiohttp' in sys.modules)\n"
    )
    assert printed_by("-c", program) == "False\n"


@gen_test()
async def test_a_scheduler_that_can_not_listen_gives_its_pages_port_back() -> None:
    """So that the next attempt finds the usual one free."""
    async with Scheduler() as other:
        port = int(other.address.rpartition(":")[2])
        failing = Scheduler(port=port, dashboard_address=":0")
        with pytest.raises(OSError, match="Cannot listen"):
            await failing.start()
    with bind_page("127.0.0.1", failing.services["dashboard"]) as sock:
        assert sock.getsockname()[1] == failing.services["dashboard"]


@gen_test()
async def test_without_aiohttp_programs_get_their_answers_and_people_a_line() -> None:
    """Of what to install."""
    async with Scheduler() as served, plain_server(served) as port:
        assert (await visit(port, "/health")).text == "ok"
        assert json.loads((await visit(port, "/json/counts.json?x=1")).text)["tasks"] == 0
        missing = await visit(port, "/status")
        assert missing.status == 503
        assert "pip install 'shoal[dashboard]'" in missing.text
        assert missing.headers["x-content-type-options"] == "nosniff"
        assert (await visit(port, "/status", host="evil.example")).status == 403
        assert (await visit(port, "/health", method="HEAD")).text == ""
        assert (await visit(port, "/health", method="POST")).status == 405


@pytest.mark.parametrize("request_bytes", [b"\x16\x03\x01\r\n\r\n", b"GET /" + b"x" * 70_000])
@gen_test()
async def test_without_aiohttp_what_is_no_request_does_no_harm(request_bytes: bytes) -> None:
    """It is answered or sent away, and the next is served."""
    async with Scheduler() as served, plain_server(served) as port:
        try:
            assert (await say(port, request_bytes)).status in (0, 405)
        except ConnectionError:
            pass  # it was sent away in the middle of its words
        assert (await visit(port, "/health")).status == 200


@gen_test()
async def test_what_is_no_request_does_no_harm() -> None:
    """Such as TLS where none is spoken; nothing of it is worth a warning."""
    with captured_logger("shoal", logging.WARNING) as heard:
        async with scheduler() as (_, port):
            assert (await say(port, b"\x16\x03\x01\x02\x00\x01\r\n\r\n")).status == 400
            assert (await visit(port, "/health")).status == 200
    assert heard.getvalue() == ""
