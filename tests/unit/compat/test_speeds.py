"""How fast disks, memory and the network are, by the names of old."""

import asyncio

from shoal.compat.servers.pool import ConnectionPool
from shoal.compat.servers.server import Server
from shoal.compat.speeds import benchmark_disk, benchmark_memory, benchmark_network

SIZES = ["1 kiB", "2 kiB"]


def test_each_size_is_tried_however_little_time_there_is(tmp_path):
    for found in (benchmark_memory(SIZES, "0 s"), benchmark_disk(str(tmp_path), SIZES, "0 s")):
        assert list(found) == SIZES
        assert all(speed > 0 for speed in found.values())
    assert not list(tmp_path.iterdir())


def test_a_server_is_sent_each_size_and_sends_it_back():
    async def scenario():
        async with Server({}) as server, ConnectionPool() as pool:
            await server.listen("inproc://")
            found = await benchmark_network(server.address, pool, SIZES, "0 s")
            assert list(found) == SIZES
            assert server.counters["op"].components[0] == {"echo": 2}

    asyncio.run(scenario())
