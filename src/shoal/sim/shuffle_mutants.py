"""Guards of shuffles, each deleted in turn."""

from typing import Final

from shoal.sim.mutant import Mutant

OF_SHUFFLES: Final = (
    Mutant(
        "a barrier in memory keeps nothing",
        "shoal.scheduler.machine.shuffling",
        "    keep_inputs(shuffle)\n",
        "",
    ),
    Mutant(
        "a barrier outlives the shards that it stands for",
        "shoal.scheduler.machine.finishing",
        "    if core.state.barriers:\n        for barrier in barriers_lost_with",
        "    if False:\n        for barrier in barriers_lost_with",
    ),
    Mutant(
        "shards are kept for a barrier that has gone",
        "shoal.scheduler.machine.releasing",
        "            let_go_of_inputs(core, task)\n",
        "            pass\n",
    ),
    Mutant(
        "what is known of a shuffle outlives its barrier",
        "shoal.scheduler.machine.releasing",
        "        forget_barrier(core, task)\n",
        "        pass\n",
    ),
    Mutant(
        "a copy of a barrier's value is taken for one",
        "shoal.scheduler.machine.finishing",
        "task.options.actor or task in core.state.barriers:",
        "task.options.actor:",
    ),
    Mutant(
        "shards of which nothing was heard are as good as others",
        "shoal.scheduler.machine.shuffling",
        "        if transfer not in shuffle.made or transfer.who_has is None\n",
        "        if transfer.who_has is None\n",
    ),
    Mutant(
        "it is said where shards are that are being made again",
        "shoal.scheduler.machine.shuffling",
        "    if shuffle.barrier.state != MEMORY:\n",
        "    if False:\n",
    ),
    Mutant(
        "outputs may be of other rows than those before",
        "shoal.scheduler.machine.shuffling",
        "    if changed is None or not _has_begun(shuffle):\n",
        "    if True:\n",
    ),
    Mutant(
        "who asks where shards are is told what was so before",
        "shoal.scheduler.machine.barriers",
        "            shuffle.located = None\n",
        "            pass\n",
    ),
)
