"""How many tasks of a name may run at once, and what is told of tasks that nobody may run.

Free tags: 384 to 389.
"""

from shoal.ids import Key
from shoal.protocol.messages import Message, Part
from shoal.protocol.subject import UNANSWERED, Subject


class LimitSeen(Part, frozen=True):
    """One name, as it stands."""

    nruns_max: int | None  # as is set; None: as tasks say
    nruns: int
    nwaiting: int  # tasks that are ready


class SetLimits(Message, frozen=True, tag=380):
    """From now on so many tasks that name each of these may run at once; None: as they say.

    Answered as GetLimits.
    """

    request: int
    limits: dict[str, int | None]


class GetLimits(Message, frozen=True, tag=381):
    """All names that are set, run or waited for."""

    request: int


class TasksStranded(Message, frozen=True, tag=382):
    """No connected worker may run some of the tasks that the client waits for, all alike."""

    key: Key  # one of them
    ntasks: int  # that were looked at; there may be more
    seconds: float  # since when it is so
    workers: list[str]  # that may run them, as was said; [] = any
    resources: dict[str, float]  # that they need
    nworkers: int  # that are connected
    offered: dict[str, float]  # of each resource, the most that one has which may run them
    names: list[str]  # of some of the workers
    npaused: int = 0  # of the workers, those that take nothing for now


class PlacesHeld(Message, frozen=True, tag=383):
    """A task that the client waits for has submitted tasks which need what only it, and others like
    it, have: if they wait for those, they wait for ever."""

    key: Key  # one of the tasks that were submitted
    holder: Key  # by this one
    nholders: int
    names: list[str]  # limits and resources
    seconds: float  # since when it is so


SUBJECT = Subject(
    from_client={SetLimits: dict[str, LimitSeen], GetLimits: dict[str, LimitSeen]},
    to_client={TasksStranded: UNANSWERED, PlacesHeld: UNANSWERED},
)
