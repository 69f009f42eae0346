"""Clients ask what tasks wait for, or why they ran where they did."""

from shoal.protocol.answers import answer
from shoal.protocol.keys import to_text
from shoal.protocol.placement import ExplainTasks
from shoal.protocol.questions import Transition
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.policies.explain import Explaining

KEYS_MAX = 100
"""Tasks that are explained in one answer; how many more there were is said."""

WORKERS_LOOKED_AT = 10_000
"""By all of these tasks together: each may look at every worker; some 15 ms."""


def on_explain_tasks(core: Core, client: Client, call: ExplainTasks) -> None:
    """Lines for people, in the order of the keys.

    Cost: O(records + keys x workers), and looks at what they wait for; some ms, whatever there is.
    """
    explaining = Explaining(core.state, core.queuing, core.admission, core.now)
    keys = list(dict.fromkeys(call.keys))
    nkeys = max(1, min(KEYS_MAX, WORKERS_LOOKED_AT // max(1, len(core.state.workers))))
    asked = frozenset(keys[:nkeys])
    records: dict[str, list[Transition]] = {}
    for record in core.story.where(asked, frozenset()):
        records.setdefault(record.key, []).append(record)
    moves = [move for move in core.story.moves if move[1] in asked]
    lines: list[str] = []
    for key in keys[:nkeys]:
        task = core.state.tasks.get(key)
        if task is None:
            lines.append(f"{to_text(key)!r} is not known: it was never submitted, or is forgotten")
            continue
        of_task = [move for move in moves if move[1] == key]
        lines.extend(explaining.lines(task, records.get(key, ()), of_task))
    if len(keys) > nkeys:
        lines.append(f"and {len(keys) - nkeys} more")
    if core.state.journal_trouble:
        lines.append(
            f"the scheduler's journal has stopped ({core.state.journal_trouble}): nothing that is "
            "published or detached outlives the scheduler"
        )
    core.to_client(client, answer(call.request, lines))


HANDLERS = Handlers(from_client={ExplainTasks: on_explain_tasks})
