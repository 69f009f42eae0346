"""Rounds over copies beside the machine: policies of programs, and how clients steer them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import dask
import pytest

from shoal import Client, Scheduler, Worker
from shoal.compat.active_memory import (
    ActiveMemoryManagerPolicy,
    ReduceReplicas,
    RetireWorker,
    Suggestion,
)
from shoal.scheduler.shell.errors import MeasureUnknown
from shoal.scheduler.shell.rounds import Rounds
from tests.until import until

POLICIES = "distributed.scheduler.active-memory-manager.policies"


class Suggesting(ActiveMemoryManagerPolicy):
    """Suggests what it was made with, and keeps what it hears."""

    def __init__(self, *suggested: Callable[[Any], Any]) -> None:
        self.suggested = suggested
        self.heard: list[Any] = []
        self.pending: list[Any] = []

    def run(self) -> Iterator[Any]:
        for make in self.suggested:
            self.heard.append((yield make(self.manager.scheduler)))
            self.pending.append({task.key: sides for task, sides in self.manager.pending.items()})


def of_x(op: str, *workers: Worker) -> Callable[[Any], Suggestion]:
    """That something be done about x, by one of these workers."""
    addresses = [worker.address for worker in workers]
    return lambda scheduler: Suggestion(
        op,  # type: ignore[arg-type]
        scheduler.tasks["x"],
        {scheduler.workers[address] for address in addresses} or None,
    )


@asynccontextmanager
async def three() -> AsyncIterator[tuple[Any, Scheduler, list[Worker]]]:
    """A client, a scheduler that begins no rounds by itself, and three workers; x is on one."""
    with dask.config.set({"distributed.scheduler.active-memory-manager.start": False}):
        async with (
            Scheduler(protocol="inproc", validate=True) as scheduler,
            Worker(scheduler.address, name="a", nthreads=1) as a,
            Worker(scheduler.address, name="b", nthreads=1) as b,
            Worker(scheduler.address, name="d", nthreads=1) as d,
            Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
        ):
            client.x = client.submit(bytes, 10_000, key="x", workers=["a"])
            await client.x
            yield client, scheduler, [a, b, d]


async def holders(scheduler: Scheduler, n: int) -> set[str]:
    """Names of those that hold x, once so many do."""
    found: set[str] = set()

    def are_there() -> bool:
        found.clear()
        found.update(worker.name for worker in scheduler.tasks["x"].who_has)
        return len(found) == n

    await until(are_there)
    return found


def play(scenario: Callable[..., Any]) -> None:
    async def played() -> None:
        async with three() as parts:
            await scenario(*parts)

    asyncio.run(played())


def test_clients_begin_end_and_ask_for_rounds() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        assert await client.amm.running() is False
        await client.amm.start()
        assert scheduler.machine.state.reduction.is_on
        assert await client.amm.running() is True
        await client.amm.stop()
        assert await client.amm.running() is False
        assert not scheduler.machine.state.reduction.is_on
        assert await client.scheduler.amm_handler(method="running") is False
        with pytest.raises(ValueError, match="'dance' is none of start, stop, run_once"):
            await client.scheduler.amm_handler(method="dance")

    play(scenario)


def test_one_round_drops_what_runs_have_fetched_and_nobody_needs() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        assert await client.submit(len, client.x, workers=["b"]) == 10_000
        assert await holders(scheduler, 2) == {"a", "b"}
        await client.amm.run_once()
        await holders(scheduler, 1)

    play(scenario)


def test_a_policy_hears_who_was_chosen_and_its_copies_are_made_and_dropped() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        a, b, _ = workers
        copying = Suggesting(
            of_x("replicate", b), of_x("replicate", b), of_x("replicate"), of_x("drop")
        )
        rounds = Rounds(scheduler, {copying}, start=False)
        assert scheduler.extensions["amm"] is rounds
        await client.amm.run_once()
        names = [None if view is None else view.name for view in copying.heard]
        assert names == ["b", None, "d", None]  # b gets one already, and the last copy stays
        copies, drops = copying.pending[2]["x"]
        assert ({view.name for view in copies}, drops) == ({"b", "d"}, set())
        assert not rounds.pending
        await holders(scheduler, 3)
        dropping = Suggesting(of_x("drop", a), of_x("drop", a), of_x("drop"), of_x("drop"))
        Rounds(scheduler, {dropping}, start=False).run_once()
        heard = [None if view is None else view.name for view in dropping.heard]
        assert heard[:2] == ["a", None]
        assert heard[3] is None
        assert len(await holders(scheduler, 1)) == 1

    play(scenario)


def test_a_policy_that_raises_or_suggests_nonsense_is_named_ends_and_stops_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Suggesting):
        def run(self) -> Iterator[Any]:
            raise RuntimeError("no idea")

    class Babbling(Suggesting):
        def run(self) -> Iterator[Any]:
            yield "drop", "x"

    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        last = Suggesting(of_x("replicate"))
        rounds = Rounds(scheduler, [Broken(), Babbling()], start=False)
        rounds.add_policy(last)
        with caplog.at_level(logging.ERROR, "shoal.scheduler"):
            rounds.run_once()
        told = [record.getMessage() for record in caplog.records]
        assert [text.partition(": ")[0] for text in told] == [
            "The policy Broken() for copies of results has raised RuntimeError",
            "The policy Babbling() for copies of results has raised NoSuggestion",
        ]
        assert all("It is asked no more" in text for text in told)
        assert "Suggestion(" in caplog.text
        assert set(rounds.policies) == {last}
        await holders(scheduler, 2)

    play(scenario)


def test_a_slow_policy_is_told_of_once_and_asked_in_fewer_rounds_until_it_is_quick(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Timed(Rounds):
        def clock(self) -> float:  # type: ignore[override]
            return now[0]

    class Slow(Suggesting):
        def run(self) -> Iterator[Any]:
            now[0] += takes[0]
            yield from super().run()
            asked.append(nrounds[0])

    class Quick(Suggesting):
        def run(self) -> Iterator[Any]:
            nquick[0] += 1
            yield from super().run()

    now, takes, nrounds, nquick = [0.0], [0.5], [0], [0]
    asked: list[int] = []

    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        rounds = Timed(scheduler, [Slow(), Quick()], start=False)
        with caplog.at_level(logging.WARNING, "shoal.scheduler"):
            for nrounds[0] in range(20):
                rounds._tick()
        [told] = [record.getMessage() for record in caplog.records]
        assert "The policy Slow() for copies of results took 500 ms" in told
        assert asked == [0, 1, 2, 4, 8, 16]
        assert nquick[0] == 20
        rounds.run_once()  # whoever asks for a round has all of them
        assert len(asked) == 7
        takes[0] = 0.001
        rounds.run_once()
        asked.clear()
        for nrounds[0] in range(3):
            rounds._tick()
        assert asked == [0, 1, 2]
        rounds.stop()

    play(scenario)


def test_policies_of_settings_run_again_and_again_until_they_are_stopped() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        policy = Suggesting(of_x("replicate"))
        rounds = Rounds(scheduler, [policy], start=True, interval="1ms")
        assert await client.amm.running() is True
        await holders(scheduler, 3)
        await client.amm.stop()
        nrounds = len(policy.heard)
        assert not rounds.running
        await client.amm.run_once()
        assert len(policy.heard) == nrounds + 1

    play(scenario)


def test_a_policy_beside_the_machines_own_has_both_run_by_the_clock() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        scheduler.rounds.start()
        assert scheduler.machine.state.reduction.is_on
        scheduler.rounds.interval = 0.001
        scheduler.rounds.add_policy(Suggesting(of_x("replicate")))
        assert not scheduler.machine.state.reduction.is_on
        assert scheduler.rounds.running
        with pytest.raises(TypeError, match="a method `run`; got 7"):
            scheduler.rounds.add_policy(7)
        await holders(scheduler, 2)  # and then one again, by the other policy
        scheduler.rounds.stop()
        assert not scheduler.rounds.running

    play(scenario)


def test_settings_name_policies_with_their_arguments() -> None:
    rows = [
        {"class": "distributed.active_memory_manager.ReduceReplicas"},
        {"class": "distributed.active_memory_manager.RetireWorker", "address": "tcp://h:1"},
    ]

    async def scenario() -> None:
        async with Scheduler(protocol="inproc") as scheduler:
            found = sorted(map(repr, scheduler.extensions["amm"].policies))
            assert found == ["ReduceReplicas()", "RetireWorker('tcp://h:1')"]
            assert scheduler.extensions["amm"].running
        assert not scheduler.extensions["amm"].running

    with dask.config.set({POLICIES: rows}):
        asyncio.run(scenario())
    with (
        dask.config.set({POLICIES: [{"class": "shoal.nowhere.Policy"}]}),
        pytest.raises(ModuleNotFoundError, match="nowhere"),
    ):
        asyncio.run(scenario())


def test_a_derived_policy_is_asked_and_not_replaced_by_the_machine() -> None:
    class Half(ReduceReplicas):
        def run(self) -> Iterator[Any]:
            for suggestion in super().run():
                self.manager.seen.append(suggestion.ts.key)
                yield suggestion

    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        rounds: Any = Rounds(scheduler, [Half()], start=False)
        rounds.seen = []
        await client.submit(len, client.x, workers=["b"])
        await holders(scheduler, 2)
        rounds.run_once()
        assert rounds.seen == ["x"]
        await holders(scheduler, 1)

    play(scenario)


def test_the_policy_of_upstreams_retirement_moves_all_and_leaves_by_itself() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        policy = RetireWorker(workers[0].address)
        rounds = Rounds(scheduler, [policy], start=False)
        rounds.run_once()
        assert not policy.done()
        await holders(scheduler, 2)
        rounds.run_once()
        assert "a" not in await holders(scheduler, 1)
        assert policy.done()
        assert not rounds.policies
        assert not policy.no_recipients

    play(scenario)


def test_that_policy_says_so_where_nobody_can_take_what_is_left() -> None:
    async def scenario() -> None:
        async with (
            Scheduler(protocol="inproc") as scheduler,
            Worker(scheduler.address, nthreads=1) as worker,
            Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
        ):
            x = await client.scatter(1, hash=False)
            policy = RetireWorker(worker.address)
            rounds = Rounds(scheduler, [policy], start=False)
            rounds.run_once()
            assert policy.no_recipients
            assert not rounds.policies
            assert not policy.done()
            del x

    asyncio.run(scenario())


def test_a_measure_that_does_not_exist_is_told() -> None:
    with pytest.raises(MeasureUnknown, match=r"no measure 'hope' .*: optimistic, managed"):
        Rounds(Scheduler(protocol="inproc"), measure="hope")


def test_what_is_taken_out_of_the_policies_is_not_done_any_more() -> None:
    async def scenario() -> None:
        async with Scheduler(protocol="inproc") as scheduler:
            rounds = scheduler.extensions["amm"]
            own = scheduler.machine.state.reduction
            assert own.is_on
            kept = set(rounds.policies)
            rounds.policies.clear()
            assert not own.is_on
            assert rounds.running
            assert rounds.policies == set()
            rounds.policies |= kept
            assert own.is_on
            rounds.stop()
            rounds.policies.clear()
            assert not rounds.running

    asyncio.run(scenario())


def test_rounds_that_are_not_to_begin_end_those_they_take_over() -> None:
    async def scenario() -> None:
        async with Scheduler(protocol="inproc") as scheduler:
            assert scheduler.machine.state.reduction.is_on
            rounds = Rounds(scheduler, [ReduceReplicas()], start=False)
            assert not rounds.running
            assert not scheduler.machine.state.reduction.is_on
            Rounds(scheduler, [ReduceReplicas()], start=True)
            assert scheduler.machine.state.reduction.is_on

    asyncio.run(scenario())


def test_a_policy_that_begins_the_rounds_anew_has_no_more_of_them() -> None:
    class Restless(Suggesting):
        def run(self) -> Iterator[Any]:
            self.manager.stop()
            self.manager.start()
            return super().run()

    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        rounds = Rounds(scheduler, [Restless()], start=True, interval=3600)
        loop = asyncio.get_running_loop()
        rounds._tick()
        planned = [
            handle
            for handle in loop._scheduled  # type: ignore[attr-defined]
            if not handle.cancelled() and getattr(handle._callback, "__self__", None) is rounds
        ]
        assert len(planned) == 1
        rounds.stop()

    play(scenario)


def test_the_policy_of_retirement_asks_for_one_copy_however_long_that_takes() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        policy = RetireWorker(workers[0].address)
        rounds = Rounds(scheduler, [policy], start=False)
        for _ in range(3):  # none has arrived before the last
            rounds.run_once()
        await until(lambda: not scheduler.machine.state.copies.on_way)
        assert len(scheduler.tasks["x"].who_has) == 2
        assert not policy.no_recipients

    play(scenario)


def test_the_measure_of_the_rounds_says_who_drops_what_nobody_needs() -> None:
    async def scenario(client: Any, scheduler: Scheduler, workers: list[Worker]) -> None:
        await client.submit(len, client.x, workers=["b"])
        await holders(scheduler, 2)
        by_name = {worker.name: worker for worker in scheduler.machine.state.workers.values()}
        by_name["a"].memory_bytes, by_name["b"].memory_bytes = 10**12, 10**11
        by_name["b"].unmanaged_old_bytes = 10**11
        Rounds(scheduler, [ReduceReplicas()], measure="process", start=False).run_once()
        assert await holders(scheduler, 1) == {"b"}

    play(scenario)
