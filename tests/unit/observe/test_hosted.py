"""Plugins of a worker or nanny: one of a name at a time, whatever they do."""

import asyncio
import logging

import pytest

from shoal.observe.errors import HookCancelled, PluginUnknown
from shoal.observe.hooks import WorkerPlugin
from shoal.observe.hosted import HostedPlugins
from shoal.protocol.payload import dump_function

logger = logging.getLogger("test-of-hosted")

ORDER = []
"""What came when."""

FAILING = []
"""Names of hooks that raise."""


class Slow(WorkerPlugin):
    """Takes some turns of the loop for each of its hooks."""

    def __init__(self, mark):
        self.mark = mark

    async def setup(self, worker):
        await self.play("setup")

    async def teardown(self, worker):
        await self.play("teardown")

    async def play(self, hook):
        ORDER.append(f"{hook} {self.mark} begins")
        for _ in range(3):
            await asyncio.sleep(0)
        if hook in FAILING:
            raise LookupError(hook)
        ORDER.append(f"{hook} {self.mark} ends")


class Cancelling(WorkerPlugin):
    """Awaits what it has cancelled itself."""

    async def setup(self, worker):
        waiting = asyncio.ensure_future(asyncio.Event().wait())
        waiting.cancel()
        await waiting


class Endless(WorkerPlugin):
    """Is never torn down."""

    async def teardown(self, worker):
        await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def plugins():
    ORDER.clear()
    FAILING.clear()
    return HostedPlugins("worker", None, base=WorkerPlugin, hooks=(), logger=logger)


def play(scenario):
    asyncio.run(asyncio.wait_for(scenario, 30))


def test_what_has_one_name_has_one_turn_after_the_other(plugins):
    """Three come and one is removed, all at once."""

    async def scenario():
        sent = [dump_function(Slow(mark)) for mark in "abc"]
        await asyncio.gather(
            *(plugins.add_sent("name", pickled, idempotent=False) for pickled in sent),
            plugins.remove("name"),
            plugins.add_sent("other", sent[0], idempotent=False),
        )

    play(scenario())
    of_one = [entry for entry in ORDER if " a " not in entry]
    for begins, ends in zip(of_one[::2], of_one[1::2], strict=True):
        assert begins.replace("begins", "ends") == ends
    assert list(plugins.table.by_name) == ["other"]
    assert not plugins._turns


def test_a_removal_waits_for_the_end_of_a_setup(plugins):
    async def scenario():
        adding = asyncio.ensure_future(plugins.add(Slow("a"), "name"))
        await asyncio.sleep(0)
        await plugins.remove("name")
        await adding

    play(scenario())
    assert ORDER == [
        "setup a begins",
        "setup a ends",
        "teardown a begins",
        "teardown a ends",
    ]


def test_a_plugin_may_add_another_of_its_name_as_it_is_set_up(plugins):
    class Replacing(WorkerPlugin):
        async def setup(self, worker):
            await plugins.add(Slow("b"), "name")

    play(plugins.add(Replacing(), "name"))
    assert isinstance(plugins.table.by_name["name"], Slow)


def test_what_could_not_be_set_up_is_tried_again(plugins):
    async def scenario():
        pickled = dump_function(Slow("a"))
        FAILING.append("setup")
        for idempotent in (False, True, True):
            with pytest.raises(LookupError):
                await plugins.add_sent("name", pickled, idempotent=idempotent)
        FAILING.clear()
        assert await plugins.add_sent("name", pickled, idempotent=True) is not None
        assert await plugins.add_sent("name", pickled, idempotent=False) is None

    play(scenario())


def test_one_that_is_not_torn_down_does_not_keep_the_next_one_out(plugins, caplog):
    async def scenario():
        await plugins.add(Slow("a"), "name")
        FAILING.append("teardown")
        await plugins.add(Slow("b"), "name")
        assert plugins.table.by_name["name"].mark == "b"

    play(scenario())
    assert caplog.text.count("Worker plugin name failed to teardown") == 1


def test_a_cancellation_of_its_own_is_an_error_like_others(plugins):
    play(raises(HookCancelled, plugins.add(Cancelling(), "name"), "setup of 'name'"))


async def raises(kind, work, match):
    with pytest.raises(kind, match=match):
        await work


def test_a_cancellation_of_whoever_adds_it_is_none_of_the_plugin(plugins):
    async def scenario():
        adding = asyncio.ensure_future(plugins.add(Slow("a"), "name"))
        await asyncio.sleep(0)
        adding.cancel()
        await asyncio.gather(adding, return_exceptions=True)
        assert adding.cancelled()
        await plugins.remove("name")
        with pytest.raises(PluginUnknown):
            await plugins.remove("name")

    play(scenario())


def test_what_takes_too_long_at_the_end_is_cut_short_and_the_rest_is_not(plugins, caplog):
    async def scenario():
        await plugins.add(Endless(), "endless")
        await plugins.add(WorkerPlugin(), "plain")
        await plugins.close(0.0)

    play(scenario())
    assert not plugins.table
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == [
        "Worker plugin endless is cut short: all teardowns together may take 0 s"
    ]


def test_what_can_not_be_opened_is_in_the_log(plugins, caplog):
    play(raises(Exception, plugins.add_sent("name", b"no pickle", idempotent=False), "pickle|load"))
    assert "Worker plugin name can't be opened" in caplog.text
    assert not plugins.table


def test_the_end_waits_for_nothing_that_is_still_being_set_up(plugins):
    class Waiting(WorkerPlugin):
        async def setup(self, worker):
            await asyncio.Event().wait()

        def teardown(self, worker):
            ORDER.append("teardown")

    async def scenario():
        adding = asyncio.ensure_future(plugins.add(Waiting(), "name"))
        await asyncio.sleep(0)
        await plugins.close(1000.0)
        await asyncio.gather(adding, return_exceptions=True)
        assert adding.cancelled()

    play(scenario())
    assert ORDER == ["teardown"]
