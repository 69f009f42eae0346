"""The table of a service's plugins: who has which hook, and what becomes of what they raise."""

import asyncio
import logging

import pytest

from shoal.observe.errors import PluginUnknown
from shoal.observe.hooking import PluginTable, is_overridden, name_of
from shoal.observe.hooks import SchedulerPlugin, WorkerPlugin

logger = logging.getLogger("test-of-hooking")


class Told(SchedulerPlugin):
    def __init__(self):
        self.told = []

    def transition(self, key, start, finish, *args, stimulus_id, **kwargs):
        self.told.append(key)
        if key == "bad":
            raise LookupError(key)


@pytest.fixture
def table():
    return PluginTable(SchedulerPlugin, ("transition", "add_client"), logger, "the scheduler")


def calls(*keys):
    return [((key, "released", "waiting"), {"stimulus_id": "s"}) for key in keys]


def test_only_what_is_overridden_is_called(table):
    assert not table
    table.add("told", Told())
    assert [name for name, _ in table.having("transition")] == ["told"]
    assert table.having("add_client") == []
    assert table


def test_an_attribute_of_the_object_overrides_too():
    plugin = WorkerPlugin()
    assert not is_overridden(plugin, WorkerPlugin, "setup")
    plugin.setup = lambda worker: None
    assert is_overridden(plugin, WorkerPlugin, "setup")


def test_what_only_looks_like_a_plugin_has_what_it_defines():
    class Duck:
        def transition(self):
            """Of no base class."""

    assert is_overridden(Duck(), SchedulerPlugin, "transition")
    assert not is_overridden(Duck(), SchedulerPlugin, "add_client")


def test_an_error_is_told_once_for_each_hook_and_stops_nobody(table, caplog):
    first, second = Told(), Told()
    table.add("first", first)
    table.add("second", second)
    table.call_for_each("transition", calls("bad", "bad", "good"))
    assert first.told == second.told == ["bad", "bad", "good"]
    assert [record.args[0] for record in caplog.records] == ["first", "second"]
    table.remove("first")
    table.add("first", first)
    table.call_for_each("transition", calls("bad"))
    assert [record.args[0] for record in caplog.records] == ["first", "second", "first"]


def test_time_is_charged_to_the_name(table):
    table.add("told", Told())
    before = table.seconds["told"]
    table.call_for_each("transition", calls("good"))
    assert table.seconds["told"] > before


def test_a_plugin_may_remove_itself_as_it_is_called(table):
    class Once(SchedulerPlugin):
        def add_client(self, scheduler, client):
            table.remove("once")

    table.add("once", Once())
    assert table.call("add_client", None, "client") == []
    assert not table
    with pytest.raises(PluginUnknown, match="Could not find plugin 'once'"):
        table.remove("once")


def test_a_name_is_its_own_or_that_of_its_class_and_a_number():
    class Named(WorkerPlugin):
        name = "named"

    assert name_of(Named()) == "named"
    assert name_of(Named(), "given") == "given"
    assert name_of(WorkerPlugin()).startswith("WorkerPlugin-")
    assert name_of(WorkerPlugin()) != name_of(WorkerPlugin())


def test_a_hook_that_ends_in_a_cancellation_of_its_own_is_told_like_any_other(table, caplog):
    class Cancelling(SchedulerPlugin):
        async def add_client(self, scheduler, client):
            raise asyncio.CancelledError

        def transition(self, key, start, finish, *args, stimulus_id, **kwargs):
            raise asyncio.CancelledError

    async def scenario():
        for name, awaited in table.call("add_client", None, "client"):
            await table.finish("add_client", name, awaited)
        table.call("transition", "x", "released", "waiting", stimulus_id="s")
        table.call_for_each("transition", calls("x"))

    table.add("cancelling", Cancelling())
    asyncio.run(scenario())
    assert [record.args for record in caplog.records] == [
        ("cancelling", "add_client"),
        ("cancelling", "transition"),
    ]


def test_whoever_waits_for_a_hook_may_be_cancelled(table):
    class Endless(SchedulerPlugin):
        async def add_client(self, scheduler, client):
            await asyncio.Event().wait()

    async def scenario():
        ((name, awaited),) = table.call("add_client", None, "client")
        finishing = asyncio.ensure_future(table.finish("add_client", name, awaited))
        await asyncio.sleep(0)
        finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=True)
        assert finishing.cancelled()

    table.add("endless", Endless())
    asyncio.run(scenario())
