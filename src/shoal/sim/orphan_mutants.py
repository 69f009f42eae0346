"""Guards of what outlives a scheduler, each deleted in turn."""

from typing import Final

from shoal.sim.mutant import Mutant

OF_ORPHANS: Final = (
    Mutant(
        "what a worker had that has gone is waited for",
        "shoal.scheduler.machine.orphans",
        "    for key in list(core.state.orphans.of_worker.get(worker, ())):\n",
        "    for key in list[Key]():\n",
    ),
    Mutant(
        "results of another epoch keep their numbers",
        "shoal.worker.machine.orphans",
        "        if replica.task >= 0:\n            pairs",
        "        if False:\n            pairs",
    ),
)
