"""Looks at a scheduler and its workers: they hold up nobody, and wait for nobody for ever."""

import asyncio
import gzip
from types import SimpleNamespace
from typing import Any

import msgspec

from shoal.comms import PendingCalls
from shoal.ids import Key
from shoal.observe.dumps import in_plain_types, packed
from shoal.protocol.answers import answer
from shoal.protocol.looking import CallStacksHere, SizesOfResults
from shoal.protocol.messages import Failure
from shoal.scheduler.shell.operations.asking import ask, ask_all, those_that_answered
from shoal.scheduler.shell.operations.looking import on_sizes_of_results
from shoal.scheduler.shell.slices import in_slices
from tests.unit.scheduler.stage import a_result, a_task, a_worker


def test_others_run_between_slices_and_what_is_added_meanwhile_is_not_seen() -> None:
    async def play() -> None:
        noted: list[Any] = []
        items = dict.fromkeys(range(5))

        async def somebody_else() -> None:
            for name in "abc":
                noted.append(name)
                items[100 + len(items)] = None
                await asyncio.sleep(0)

        other = asyncio.create_task(somebody_else())
        async for part in in_slices(items, 2):
            noted.append(part)
        await other
        assert noted == [[0, 1], "a", [2, 3], "b", [4], "c"]

    asyncio.run(play())


def test_sizes_are_added_up_once_for_each_result_in_memory() -> None:
    async def play() -> None:
        tasks = {
            Key(name): a_result(name, nbytes, a_worker()) for name, nbytes in (("x", 3), ("y", 4))
        }
        tasks[Key("z")] = a_task("z")
        host: Any = SimpleNamespace(machine=SimpleNamespace(state=SimpleNamespace(tasks=tasks)))
        some = [Key(name) for name in ("x", "x", "z", "nobody's")]
        for asked, expected in ((None, {"x": 3, "y": 4}), (some, {"x": 3})):
            for by_prefix in (True, False):
                call = SizesOfResults(1, asked, by_prefix)
                assert await on_sizes_of_results(host, call) == answer(1, expected)

    asyncio.run(play())


def test_a_worker_that_does_not_answer_is_waited_for_no_longer_than_that() -> None:
    """Its failure says who it is; what others said is there."""

    async def play() -> None:
        answering, silent = a_worker("a"), a_worker("b")

        class Peer:
            def __init__(self, answers: bool) -> None:
                self.answers, self.calls = answers, PendingCalls("tcp://b:1")

            def send(self, messages: list[CallStacksHere]) -> None:
                if self.answers:
                    self.calls.resolve(answer(messages[0].request, {"x": ["line"]}))

        peers = {answering: Peer(True), silent: Peer(False)}
        host: Any = SimpleNamespace(peer_of=peers.__getitem__)
        told = await ask_all(host, peers, CallStacksHere, seconds_max=0.01)
        assert those_that_answered(told) == {answering.address: {"x": ["line"]}}
        failure = await ask(host, silent, CallStacksHere, 0.01)
        assert isinstance(failure, Failure)
        assert "tcp://b:1 did not answer" in failure.text
        assert [len(peer.calls) for peer in peers.values()] == [0, 0]

    asyncio.run(play())


def test_parts_that_are_encoded_are_dumped_and_shown_as_what_they_say() -> None:
    encoded = msgspec.Raw(msgspec.msgpack.encode({"key": "x", "who_has": ["a"]}))
    state = {"scheduler": {"tasks": {"x": encoded}, "log": [encoded], "n": 1}, "workers": {}}
    plain = {"key": "x", "who_has": ["a"]}
    expected = {"scheduler": {"tasks": {"x": plain}, "log": [plain], "n": 1}, "workers": {}}
    assert in_plain_types(state) == expected
    assert packed(state, "yaml") == packed(expected, "yaml")
    assert msgspec.msgpack.decode(gzip.decompress(packed(state, "msgpack"))) == expected
