"""Guards of what is done about silence, each deleted in turn."""

from typing import Final

from shoal.sim.mutant import Mutant

OF_SILENCE: Final = (
    Mutant(
        "whatever is said by who hears nothing is a sign of life",
        "shoal.scheduler.machine.step",
        "        if not worker.hearing.is_lost:\n",
        "        if True:\n",
    ),
    Mutant(
        "nobody is asked whether anything arrives",
        "shoal.scheduler.machine.suspecting",
        "    if not has_received and not is_lost and hearing.nsaid > hearing.nheard:\n",
        "    if False:\n",
    ),
    Mutant(
        "who has heard all is asked all the time",
        "shoal.scheduler.machine.suspecting",
        " and hearing.nsaid > hearing.nheard:\n",
        ":\n",
    ),
    Mutant(
        "what a suspect had is not its own again",
        "shoal.scheduler.machine.suspecting",
        "            silence.replicas[task.id] = task.nbytes\n",
        "",
    ),
)
