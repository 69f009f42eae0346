"""Resources that runs of one worker of the simulation have: never more than it offers."""

from shoal.sim.footprints import Owner
from shoal.worker.model.entities import Run


class Amounts:
    """By run, as long as it executes."""

    def __init__(self, worker: Owner) -> None:
        self._worker = worker
        self._used: dict[Run, dict[str, float]] = {}

    def take(self, run: Run) -> None:
        """It has resources now, of which no worker has more than the plan says.

        A scheduler that was lost and is back does not know of runs that go on from before.
        """
        worker = self._worker
        if worker.has_reconnected:
            return
        self._used[run] = worker.stage.resources_of(run.task, worker.machine.state.epoch)
        for name, amount in worker.machine.state.settings.resources.items():
            used = sum(part.get(name, 0.0) for part in self._used.values())
            if used > amount:
                worker.fail("resources hold", f"uses {used} of {amount} {name}", run.key)

    def give_back(self, run: Run) -> None:
        """It has ended."""
        self._used.pop(run, None)
