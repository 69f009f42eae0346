"""Very many workers are let in quickly, and cost little while nothing happens."""

import asyncio
from pathlib import Path

from tests.faults.kit.roles import Cast
from tests.faults.many_workers import crowd
from tests.faults.table import of_fault

NWORKERS = 500


@of_fault("F57")
def test_hundreds_of_workers_register_at_once_and_stay(tmp_path: Path) -> None:
    """As many as a suite has time for; ten thousand are measured by a gate."""
    with Cast(tmp_path) as cast:
        role, address = cast.scheduler()
        found = asyncio.run(crowd(address, cast.keyring(address), role.pid, NWORKERS, 1.0))
        assert found.nregistered == NWORKERS
        assert found.nlost == 0
        with cast.client(address) as client:
            assert client.scheduler_info()["workers"] == {}
        assert cast.complaints() == []
