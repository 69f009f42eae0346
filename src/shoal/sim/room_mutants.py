"""Guards of what is let into a worker's memory, each deleted in turn."""

from typing import Final

from shoal.sim.mutant import Mutant

LETTING_IN: Final = "shoal.worker.machine.letting_in"
ROOM: Final = "shoal.worker.policies.room"
MAKING_ROOM: Final = "shoal.worker.policies.making_room"

OF_ROOM: Final = (
    Mutant(
        "a run that waits for tasks that it submitted is waited for",
        LETTING_IN,
        "for run in runs) > state.nwaiting\n",
        "for run in runs) > 0\n",
    ),
    Mutant(
        "inputs of runs that wait are written and read back for ever",
        LETTING_IN,
        "    return favours is None or favours.left_bytes > 0\n",
        "    return True\n",
    ),
    Mutant(
        "what left memory for the first that waits is not noted",
        LETTING_IN,
        "    favours.left_bytes -= max(nbytes, favours.least_bytes)\n",
        "    pass\n",
    ),
    Mutant(
        "what little left memory for the first that waits counts as little",
        LETTING_IN,
        "max(nbytes, favours.least_bytes)",
        "nbytes",
    ),
    Mutant(
        "what is forced waits until nothing is under way, though that stands still",
        LETTING_IN,
        "    if room.is_forced and (room.is_overdue or not is_under_way(state)):\n",
        "    if room.is_forced and not is_under_way(state):\n",
    ),
    Mutant(
        "all that wait are let in as one is forced",
        LETTING_IN,
        "        room.is_forced = room.is_overdue = False\n        return True\n",
        "        return True\n",
    ),
    Mutant(
        "who comes later is let in as nobody was when no room could be made",
        LETTING_IN,
        "    if room is not None:\n        room.is_forced = room.is_overdue = False\n",
        "    if False:\n        pass\n",
    ),
    Mutant(
        "others pass the one that waits",
        LETTING_IN,
        "    if room.lacking_bytes:\n        return False\n",
        "",
    ),
    Mutant(
        "once something was lacking it lacks for ever",
        LETTING_IN,
        "        room.lacking_bytes = 0\n        room.for_run = None\n",
        "        room.for_run = None\n",
    ),
    Mutant(
        "anything fits",
        LETTING_IN,
        "    if excess <= 0:\n        return True\n    if",
        "    if True:\n        return True\n    if",
    ),
    Mutant(
        "no room is kept for runs that are let in",
        LETTING_IN,
        "        if nbytes:\n            _reserve(room, run, nbytes)\n        let_in",
        "        let_in",
    ),
    Mutant(
        "what was handed over uncounted is not counted as it gets tight",
        LETTING_IN,
        "    if room.is_near and not was_near and state.pause is None:\n",
        "    if False:\n",
    ),
    Mutant(
        "what was handed over uncounted is not counted as others come",
        LETTING_IN,
        "        room.is_near = True\n        _count_runs(state, room)\n",
        "        room.is_near = True\n",
    ),
    Mutant(
        "what was counted stays with the threads",
        LETTING_IN,
        "    if handed:\n        state.effects.append(HoldRuns(handed))\n",
        "",
    ),
    Mutant(
        "room is kept for runs that have ended",
        "shoal.worker.machine.computing",
        "        record((now, message.key, end.how, number))\n        if run.reserved_bytes:\n",
        "        record((now, message.key, end.how, number))\n        if False:\n",
    ),
    Mutant(
        "room is kept for runs that were taken back",
        "shoal.worker.machine.memory",
        "        if run.reserved_bytes:\n            release(state, run)\n",
        "",
    ),
    Mutant(
        "more is fetched at once than there is room for",
        "shoal.worker.machine.gathering",
        "            room_bytes(state),\n",
        "",
    ),
    Mutant(
        "results of peers come whatever room there is",
        "shoal.worker.machine.gathering",
        "        if not fits(state, first.nbytes, ",
        "        if False and not fits(state, first.nbytes, ",
    ),
    Mutant(
        "results from disk come whatever room there is",
        "shoal.worker.machine.residing",
        "            if not fits(state, replica.nbytes, residence.readers.first()):\n",
        "            if False:\n",
    ),
    Mutant(
        "what was promised to runs is free for others",
        ROOM,
        "self.process_bytes + promised + coming_bytes",
        "self.process_bytes + coming_bytes",
    ),
    Mutant(
        "what is on its way is not counted",
        ROOM,
        "self.process_bytes + promised + coming_bytes",
        "self.process_bytes + promised",
    ),
    Mutant(
        "who waits is let in as results are being written",
        MAKING_ROOM,
        "        if seen.leaving_bytes or (",
        "        if (",
    ),
    Mutant(
        "who waits is let in at once, whatever goes on",
        MAKING_ROOM,
        "(is_under_way and not self._stands_still(seen, now)):\n",
        "False:\n",
    ),
    Mutant(
        "what stands still keeps others out for ever",
        MAKING_ROOM,
        "        if seconds < STANDSTILL_SECONDS:\n",
        "        if True:\n",
    ),
    Mutant(
        "a run that works is taken for one that stands still",
        MAKING_ROOM,
        "        if stands != self._stands or works:\n",
        "        if stands != self._stands:\n",
    ),
    Mutant(
        "what has ended is no reason to wait",
        MAKING_ROOM,
        "        if stands != self._stands or works:\n",
        "        if works:\n",
    ),
    Mutant(
        "what is being sent is waited for without end",
        MAKING_ROOM,
        "        return now < self._sending_until\n",
        "        return True\n",
    ),
    Mutant(
        "nothing is written for what waits",
        MAKING_ROOM,
        "            if wanted > 0:\n",
        "            if False:\n",
    ),
)
