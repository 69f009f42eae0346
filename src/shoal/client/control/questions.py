"""What the cluster knows, asked and answered in plain types."""

from __future__ import annotations

from functools import partial
from typing import Any

from shoal.client.control.keys import keys_in
from shoal.client.lifecycle import ClientBase, finishes
from shoal.client.members import Members, facts_known
from shoal.observe.explanation import Explanation
from shoal.observe.facts import FactsOfScheduler, HasWhat, WhoHas, facts_of_identity
from shoal.protocol import looking, placement, questions
from shoal.protocol.keys import from_canonical
from shoal.protocol.operations import worker_names


class Questions(ClientBase):
    """`who_has`, `nthreads`, `scheduler_info` and the like: nothing changes by them."""

    async def who_has(self, futures: Any = None, **kwargs: Any) -> WhoHas:
        """Key -> addresses of the workers that hold its result.

        Args:
            futures: futures or keys; None: all that are in memory.
        """
        keys = None if futures is None else keys_in(futures)
        found = await self.session.call(lambda request: questions.WhoHas(request, keys))
        return WhoHas((from_canonical(key), tuple(holders)) for key, holders in found.items())

    async def has_what(self, workers: Any = None, **kwargs: Any) -> HasWhat:
        """Worker -> keys of the results that it holds."""
        names = None if workers is None else worker_names(workers)
        found = await self.session.call(lambda request: questions.HasWhat(request, names))
        return HasWhat((w, tuple(from_canonical(key) for key in keys)) for w, keys in found.items())

    async def explain(self, futures: Any) -> Explanation:
        """What tasks wait for, or why they ran where they did, in lines for people.

        Args:
            futures: a future or key, or several; those of collections, too.

        Returns:
            A text that a notebook shows line by line.
        """
        keys = keys_in(futures)
        lines: list[str] = await self.session.call(
            lambda request: placement.ExplainTasks(request, keys)
        )
        return Explanation("\n".join(lines))

    async def nthreads(self, workers: Any = None, **kwargs: Any) -> dict[str, int]:
        """Worker -> its number of threads."""
        names = None if workers is None else worker_names(workers)
        found: dict[str, int] = await self.session.call(
            lambda request: questions.NThreads(request, names)
        )
        return found

    async def ncores(self, workers: Any = None, **kwargs: Any) -> dict[str, int]:
        """As `nthreads`."""
        return await self.nthreads(workers)

    async def processing(self, workers: Any = None) -> dict[str, tuple[Any, ...]]:
        """Worker -> keys of the tasks that were given to it and have not ended."""
        names = None if workers is None else worker_names(workers)
        found = await self.session.call(lambda request: questions.Processing(request, names))
        return {w: tuple(from_canonical(key) for key in given) for w, given in found.items()}

    async def nbytes(self, keys: Any = None, summary: bool = True, **kwargs: Any) -> dict[Any, int]:
        """Bytes of results in memory.

        Args:
            keys: futures or keys; None: all that are known.
            summary: by prefix, which is the name of the function; False: by key.
        """
        asked = None if keys is None else keys_in(keys)
        found: dict[Any, int] = await self.session.call(
            lambda request: looking.SizesOfResults(request, asked, summary)
        )
        return found if summary else {from_canonical(key): n for key, n in found.items()}

    @finishes
    def scheduler_info(self, n_workers: int = -1, **kwargs: Any) -> Any:
        """What the scheduler and its workers are, in plain types.

        An asynchronous client has it at once, as the scheduler keeps it told of workers that come
        and go; awaited, it asks for the latest, figures included.

        Args:
            n_workers: show so many of the workers; -1: all.
        """
        if self.owner is not None:
            return self._ask_for_facts(n_workers)  # which the blocking client finishes
        session = self.session
        members = session.state_of(Members).by_address
        machine = session.machine
        identity = questions.Identity(
            machine.scheduler_id,
            session.address,
            machine.started_at,
            list(members.values()),
            machine.services,
        )
        facts = facts_known(identity, n_workers)
        facts.fresh = partial(self._ask_for_facts, n_workers)
        return facts

    async def _ask_for_facts(self, nworkers: int = -1) -> FactsOfScheduler:
        """What the scheduler says of itself and its workers now."""
        identity: questions.Identity = await self.session.call(
            lambda request: questions.SchedulerIdentity(request, nworkers)
        )
        return facts_of_identity(identity)
