"""Schedulers that come back, and workers that come back to them, with all that they had."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

from shoal import wait
from tests.faults.kit.ends import length
from tests.faults.kit.proxy import Proxy
from tests.faults.kit.roles import Cast, free_port
from tests.faults.kit.tasks import number_of, numbered, sum_of_numbers
from tests.faults.table import of_fault

NRESULTS = 300
SECONDS_MAX = 30.0


def made(runs: Path) -> Counter[str]:
    """How often each result was computed."""
    return Counter(runs.read_text().split())


def held_through_an_end_of_the_scheduler(tmp_path: Path, number: int) -> None:
    """Results on two workers are there after the scheduler has ended, and was started anew."""
    stage, runs = tmp_path / "stage", tmp_path / "runs"
    stage.mkdir()
    port = free_port()
    with Cast(stage) as cast:
        scheduler, address = cast.scheduler(port=port)
        for _ in range(2):
            cast.worker(address)
        with cast.client(address) as client:
            results = client.map(numbered, range(NRESULTS), path=str(runs))
            wait(results, timeout=SECONDS_MAX)
            scheduler.signal(number)
            scheduler.end()
            cast.scheduler(port=port)
            client.wait_for_workers(2, timeout=SECONDS_MAX)
            later = client.map(numbered, range(NRESULTS, NRESULTS + 20), path=str(runs))
            total = client.submit(sum_of_numbers, *results, *later)
            assert total.result(timeout=SECONDS_MAX) == sum(range(NRESULTS + 20))
            found = client.gather(results)
            assert [number_of(value) for value in found] == list(range(NRESULTS))
            assert made(runs) == dict.fromkeys(map(str, range(NRESULTS + 20)), 1)
        assert cast.complaints("scheduler") == []


@of_fault("F09")
def test_a_scheduler_that_was_killed_finds_all_results_and_nothing_is_computed_again(
    tmp_path: Path,
) -> None:
    held_through_an_end_of_the_scheduler(tmp_path, signal.SIGKILL)


@of_fault("F10")
def test_a_scheduler_that_was_asked_to_end_finds_all_results_and_nothing_is_computed_again(
    tmp_path: Path,
) -> None:
    held_through_an_end_of_the_scheduler(tmp_path, signal.SIGTERM)


def pids_of(client: Any) -> set[int]:
    return {facts["pid"] for facts in client.scheduler_info()["workers"].values()}


@of_fault("F47")
def test_a_worker_that_was_cut_off_comes_back_with_its_results(tmp_path: Path) -> None:
    """Its connection is reset again and again, also as it computes."""
    stage, runs = tmp_path / "stage", tmp_path / "runs"
    stage.mkdir()
    with Cast(stage) as cast:
        _, address = cast.scheduler()
        with Proxy(address) as proxy:
            cast.worker(proxy.address)
            with cast.client(address) as client:
                pids = pids_of(client)
                for batch in range(5):
                    numbers = range(batch * 20, (batch + 1) * 20)
                    results = client.map(numbered, numbers, path=str(runs))
                    wait(results[:10], timeout=SECONDS_MAX)
                    proxy.reset()
                    total = client.submit(sum_of_numbers, *results)
                    assert total.result(timeout=SECONDS_MAX) == sum(numbers)
                    assert client.submit(length, *results).result(timeout=SECONDS_MAX) > 0
                assert pids_of(client) == pids
                assert made(runs) == dict.fromkeys(map(str, range(100)), 1)
        assert cast.complaints("scheduler") == []
