"""Why a task was placed where it was: a small number in the story, beside the worker's."""

from typing import Final

HAD_ROOM: Final = 1  # of those with room, and what the task needs, it had the least to do
IN_ROW: Final = 2  # it had the tasks before this one in the order of the graph
HELD_INPUTS: Final = 3  # it held inputs, and with those still to come it would begin first there
AWAY: Final = 4  # it had the least to do, and would begin first there, though inputs had to come
FOLLOWED: Final = 5  # the small inputs were made there, and it had a thread to spare
NAMED: Final = 6  # among those that the task names, it would begin first there
ELSEWHERE: Final = 7  # it had asked to be run elsewhere, or had to be
FEWEST_ACTORS: Final = 8
EARLY: Final = 9  # it had the least to do; everything is placed at once
ROOMIEST: Final = 10  # it has the most memory
RECALLED: Final = 11  # it had nothing to do, and who had it sent was slow

STEPS: Final = 16
"""More than there are reasons: a record has the worker's number times this, and the reason."""
