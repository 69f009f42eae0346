"""A scheduler and its client are killed: what was published and what was fired outlives both."""

import os
import signal
from collections import Counter
from concurrent.futures import CancelledError
from pathlib import Path

from shoal import Client, Future, wait
from tests.faults.kit.roles import Cast, free_port
from tests.faults.kit.tasks import number_of

NRESULTS = 100
SECONDS_MAX = 30.0

PUBLISHES_AND_FIRES = f"""
import signal, sys
from shoal import Client, fire_and_forget, wait
from tests.faults.kit.tasks import noted, numbered, read_whole
address, runs, gate = sys.argv[1:]
client = Client(address)
results = client.map(numbered, range({NRESULTS}), path=runs)
wait(results)
client.publish_dataset(results, name="numbers")
client.publish_dataset({{"text": "as it is", "sum": client.submit(sum, [1, 2])}}, name="small")
fire_and_forget(client.submit(noted, client.submit(read_whole, gate), path=runs))
assert len(client.fire_and_forget_tasks()) == 1
print("done", flush=True)
signal.pause()
"""


def made(runs: Path) -> Counter[str]:
    """How often each result was computed."""
    return Counter(runs.read_text().split())


def test_published_and_fired_work_outlives_its_client_and_its_scheduler(tmp_path: Path) -> None:
    """What was fired is under way as both are killed: it waits to be told a word, which the task
    after it writes down."""
    stage, runs, gate = tmp_path / "stage", tmp_path / "runs", tmp_path / "gate"
    stage.mkdir()
    os.mkfifo(gate)
    port = free_port()
    journal = {"DASK_SHOAL__SCHEDULER__JOURNAL": str(tmp_path / "journal")}
    with Cast(stage) as cast:
        scheduler, address = cast.scheduler(port=port, **journal)
        workers = [cast.worker(address)[0] for _ in range(2)]
        program = cast.program(
            "program", PUBLISHES_AND_FIRES, address, str(runs), str(gate), **journal
        )
        assert program.line() == "done"
        for role in (program, scheduler):
            role.signal(signal.SIGKILL)
            role.end()

        cast.scheduler(port=port, **journal)
        with cast.client(address) as client:
            assert client.list_datasets() == ("numbers", "small")
            small = client.gather(client.get_dataset("small"))
            assert small == {"text": "as it is", "sum": 3}
            found = client.gather(client.get_dataset("numbers"))
            assert [number_of(value) for value in found] == list(range(NRESULTS))
            (fired,) = client.fire_and_forget_tasks()
            after = client.submit(len, client.get_dataset("small"))
            with gate.open("w") as writing:
                writing.write("word")
            assert after.result(timeout=SECONDS_MAX) == 2
            _wait_for(client, fired)
        assert made(runs) == {**dict.fromkeys(map(str, range(NRESULTS)), 1), "word": 1}
        for worker in workers:  # while there is a scheduler to say good-bye to
            worker.signal(signal.SIGTERM)
            assert worker.end() == 0
        assert cast.complaints("scheduler") == []


def _wait_for(client: Client, key: str) -> None:
    """Until a task of this key, which may have ended, is known no more, or has."""
    try:
        wait(Future(key, client), timeout=SECONDS_MAX)
    except CancelledError:
        return
