"""How an operation is called by its name."""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from shoal.comms.functions import call_function
from shoal.observe.errors import (
    NoConversation,
    NotForThisCall,
    OperationBlocked,
    OperationUnknown,
)
from shoal.observe.handling import (
    Caller,
    arguments_of,
    call_handler,
    expects_comm,
    outcome_of,
    packed,
    report_of,
    seal,
    sealed,
    value_of,
)
from shoal.protocol.exceptions import to_failure
from shoal.protocol.payload import dump_function
from shoal.protocol.running import Outcome


def call(function: Callable[..., Any], comm: Any = None, **arguments: Any) -> Any:
    return asyncio.run(call_handler("a service", {"op": function}, "op", arguments, comm))


class Owner:
    def first(self, comm, x): ...

    def later(self, x, comm): ...

    def positional(self, comm, /, x): ...

    def alone(self): ...


@pytest.mark.parametrize(
    ("name", "expected"),
    [("first", True), ("later", False), ("positional", True), ("alone", False)],
)
def test_a_comm_is_for_a_first_parameter_of_that_name(name, expected):
    assert expects_comm(getattr(Owner(), name)) is expected
    assert not expects_comm(dict)


def test_a_handler_is_given_its_comm_and_its_arguments_and_is_awaited():
    async def later(comm, x, y=1):
        await asyncio.sleep(0)
        return comm, x + y

    assert call(later, "comm", x=1) == ("comm", 2)
    assert call(lambda x: -x, "comm", x=1) == -1


def test_whoever_asks_for_what_is_not_there_is_told_what_is_and_why():
    async def ask():
        await call_handler("the x", {"b": dict, "a": dict}, "c", {}, None, ("a",), {"c": "Use d."})

    with pytest.raises(OperationUnknown) as refused:
        asyncio.run(ask())
    text = str(pickle.loads(pickle.dumps(refused.value)))
    assert text.startswith("The x has no operation 'c'. Use d. It answers to: b. ")
    assert isinstance(refused.value, AttributeError)


def test_what_is_blocked_is_refused_though_it_is_there():
    with pytest.raises(OperationBlocked, match="'op' handler has been explicitly disallowed"):
        asyncio.run(call_handler("the x", {"op": dict}, "op", {}, None, ["op"]))


def test_what_a_handler_raises_is_the_outcome():
    def fail():
        raise KeyError("no")

    async def ask():
        return await outcome_of("a service", {"op": fail}, "op", dump_function({}), None)

    outcome = asyncio.run(ask())
    with pytest.raises(KeyError, match="no"):
        list(value_of(outcome))
    assert repr(next(value_of(outcome, "return"))) == "KeyError('no')"
    assert repr(pickle.loads(next(value_of(outcome, "return_pickle")))) == "KeyError('no')"
    assert list(value_of(outcome, "ignore")) == []


@pytest.mark.parametrize("on_error", ["return", "return_pickle", "ignore"])
@pytest.mark.parametrize(
    "outcome", [Outcome(dump_function(3)), Outcome(failure=to_failure(KeyError(1)))]
)
def test_what_is_passed_on_sealed_is_the_same_once_it_is_unpickled(outcome, on_error):
    passed_on = pickle.loads(dump_function(list(sealed(outcome, on_error))))
    assert list(map(repr, map(read, passed_on))) == [
        repr(read(value)) for value in value_of(outcome, on_error)
    ]


def read(value):
    return pickle.loads(value) if isinstance(value, bytes) else value


def test_a_failure_that_is_passed_on_is_the_outcome_as_it_came():
    failed = to_failure(KeyError("no"))

    def pass_on():
        return list(sealed(Outcome(failure=failed)))

    async def ask():
        return await outcome_of("a service", {"op": pass_on}, "op", dump_function({}), None)

    assert asyncio.run(ask()).failure is failed


def test_a_message_that_is_sealed_shows_its_operation_and_keeps_its_arguments():
    message = pickle.loads(pickle.dumps(seal({"op": "x", "y": 1})))
    assert message["op"] == "x"
    assert packed(message) == packed({"op": "x", "y": 1}) == ("x", dump_function({"y": 1}))


def test_a_handler_that_is_cancelled_has_no_outcome():
    """Else a service that closes would wait for what it gives up."""

    async def scenario():
        begun = asyncio.Event()

        async def wait_forever():
            begun.set()
            await asyncio.Event().wait()

        handlers = {"op": wait_forever}
        task = asyncio.create_task(outcome_of("x", handlers, "op", dump_function({}), None))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


@pytest.mark.parametrize("way", ["read", "write"])
def test_there_is_no_conversation_with_who_has_no_connection(way):
    caller = Caller("tcp://127.0.0.1:1")
    with pytest.raises(NoConversation, match=r"rpc\('tcp://127.0.0.1:1'\)"):
        asyncio.run(getattr(caller, way)(*["x"] if way == "write" else []))


def test_a_message_is_an_operation_and_its_arguments():
    assert arguments_of({"op": "x", "reply": True, "y": 1}) == ("x", {"y": 1})
    for message in ({"y": 1}, None, "ping"):
        with pytest.raises(NotForThisCall, match="names none"):
            arguments_of(message)


def test_functions_may_come_pickled_and_what_they_raise_is_told():
    async def report(function, args=(), kwargs=None):
        return await report_of(call_function, function, args, kwargs, {"who": 3}, wait=True)

    pickled = dump_function(lambda x, who: x * who)
    assert asyncio.run(report(pickled, dump_function((2,))))["result"] == 6
    assert asyncio.run(report(lambda who: who)) == {"status": "OK", "result": 3}
    told = asyncio.run(report(lambda: 1 / 0))
    assert told["status"] == "error"
    assert isinstance(told["exception"], ZeroDivisionError)
    assert "ZeroDivisionError" in told["traceback_text"]
