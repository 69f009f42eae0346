"""Looks into what workers and the scheduler are doing, by asking them."""

from __future__ import annotations

import asyncio
from typing import Any

from shoal.client.control.keys import keys_in
from shoal.client.control.questions import Questions
from shoal.client.errors import SchedulerFileTaken, VersionsDiffer
from shoal.comms import find_token
from shoal.comms.scheduler_file import write_scheduler_file
from shoal.observe.stimuli import read_stimuli, stimulus_of, stimulus_of_run
from shoal.observe.versions import error_message, get_versions
from shoal.protocol import looking
from shoal.protocol.keys import from_canonical
from shoal.protocol.payload import dump_function


class Looking(Questions):
    """`call_stack`, `story`, `get_versions`, `dump_cluster_state` and the like."""

    async def call_stack(self, futures: Any = None, keys: Any = None) -> dict[str, dict[Any, Any]]:
        """Where the tasks are that run now: worker -> key -> its frames, outermost first.

        Args:
            futures, keys: of these tasks; neither: of all that run.
        """
        asked = None
        if futures is not None or keys is not None:
            asked = [key for each in (futures, keys) if each is not None for key in keys_in(each)]
        found: dict[str, dict[Any, list[str]]] = await self.session.call(
            lambda request: looking.CallStacks(request, asked)
        )
        return {
            worker: {from_canonical(key): tuple(frames) for key, frames in stacks.items()}
            for worker, stacks in found.items()
        }

    async def story(self, *keys_or_stimuli: Any, on_error: str = "raise") -> list[tuple[Any, ...]]:
        """What was recorded of tasks: by the scheduler, then by each worker, oldest first.

        Args:
            keys_or_stimuli: futures or keys; or what stories name as a cause, e.g. `"run-17"`.
            on_error: `ignore`: leave out workers that do not answer.

        Returns:
            Entries `("scheduler", key, state before, state after, {}, cause, at)` and
            `(address of a worker, key, what, {}, cause, at)`, `at` in seconds since the epoch.
        """
        if on_error not in ("raise", "ignore"):
            raise ValueError(f"on_error is 'raise' or 'ignore', not {on_error!r}")
        keys, stimuli = keys_in(list(keys_or_stimuli)), read_stimuli(keys_or_stimuli)
        told: looking.Told = await self.session.call(
            lambda request: looking.WholeStory(
                request, keys, stimuli.steps, stimuli.runs, on_error == "ignore"
            )
        )
        entries: list[tuple[Any, ...]] = []
        for t in told.scheduler:
            cause = stimulus_of(t.cause, t.step)
            key = from_canonical(t.key)
            entries.append(("scheduler", key, t.start, t.finish, {}, cause, t.at))
        for worker, records in told.workers.items():
            for r in records:
                cause = stimulus_of_run(r.run)
                entries.append((worker, from_canonical(r.key), r.what, {}, cause, r.at))
        return entries

    async def get_versions(self, check: bool = False, packages: Any = None) -> dict[str, Any]:
        """What is installed here, in the scheduler and on each worker.

        Args:
            check: raise if they differ.
            packages: names to look for beside those that are always looked for.

        Returns:
            `{"scheduler": v, "workers": {address: v}, "client": v}`, each `v` with `host` (the
            interpreter and the system) and `packages` (name -> version, None if it is missing).

        Raises:
            VersionsDiffer: they do; a ValueError.
        """
        names = list(packages or ())
        found: looking.Installed = await self.session.call(
            lambda request: looking.InstalledVersions(request, names)
        )
        here = await asyncio.to_thread(get_versions, names)
        if check:
            differ = error_message(found.scheduler, found.workers or {"": here}, here)["warning"]
            if differ:
                raise VersionsDiffer(differ)
        return {"scheduler": found.scheduler, "workers": found.workers, "client": here}

    async def benchmark_hardware(self) -> dict[str, dict[str, float]]:
        """How fast disks, memory and the network are: `{"disk": {size: bytes/s}, ...}`.

        Means over the workers, which are busy with it for a few seconds; the network is measured
        between two workers at a time, so that takes a second for each.
        """
        found: dict[str, dict[str, float]] = await self.session.call(looking.HardwareSpeeds)
        return found

    async def dump_cluster_state(
        self,
        filename: str = "dask-cluster-dump",
        write_from_scheduler: bool | None = None,
        exclude: Any = (),
        format: str = "msgpack",
        **storage_options: Any,
    ) -> None:
        """Write all that the scheduler and the workers know to one file, for people and reports.

        Args:
            filename: gets the ending of its format; may be anything that `fsspec` opens.
            write_from_scheduler: the scheduler writes it, which has to reach that place; None: if
                the name is a url.
            exclude: names of fields to leave out.
            format: `msgpack` or `yaml`.
            storage_options: for `fsspec`.

        Raises:
            UnknownDumpFormat: the format is none of these; a ValueError.
            OSError: it can't be written there.
        """
        from shoal.observe import dumps  # only here, as it is rare

        url = dumps.file_of(str(filename), format)
        from_there = dumps.is_url(url) if write_from_scheduler is None else write_from_scheduler
        content: bytes = await self.session.call(
            lambda request: looking.ClusterState(
                request,
                list(exclude),
                format,
                url if from_there else "",
                dump_function(storage_options) if from_there else b"",
            )
        )
        if not from_there:
            await asyncio.to_thread(dumps.write_content, content, url, storage_options)

    async def write_scheduler_file(self, scheduler_file: str) -> None:
        """Write the file by which other clients, and workers, find this scheduler.

        Raises:
            SchedulerFileTaken: this client has written one, or was made with one; a ValueError.
            OSError: it can't be written there.
        """
        if self.scheduler_file:
            raise SchedulerFileTaken(self.scheduler_file)
        facts = dict(await self._ask_for_facts())
        token = getattr(self.cluster, "token", None) or find_token(self.session.address)
        await asyncio.to_thread(write_scheduler_file, str(scheduler_file), facts, token)
        self.scheduler_file = str(scheduler_file)
