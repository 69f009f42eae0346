"""How long an owner waits for a process that it has started."""

import asyncio

import pytest

from shoal.nanny.errors import ProcessLate
from shoal.nanny.process import ServiceProcess


def test_a_process_that_waits_for_plugins_may_take_however_long():
    async def scenario():
        process = ServiceProcess("the worker", {})
        process._ready = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(process.ready(60.0))
        await asyncio.sleep(0)
        assert process._patience.when() is not None
        process._hear({"prepared": True})
        assert process._patience.when() is None
        process._hear({"address": "here"})
        assert await waiting == {"address": "here"}
        process._hear({"prepared": True})  # as it registers anew, when nobody waits
        assert await process.ready(0.0) == {"address": "here"}

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_process_that_says_nothing_is_late():
    async def scenario():
        process = ServiceProcess("the worker", {})
        process._ready = asyncio.get_running_loop().create_future()
        with pytest.raises(ProcessLate, match="the worker"):
            await process.ready(0.0)

    asyncio.run(asyncio.wait_for(scenario(), 30))
