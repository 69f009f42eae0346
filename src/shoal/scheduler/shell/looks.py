"""What a scheduler in this process can be asked about the whole cluster, by upstream's names."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from shoal.observe.versions import get_versions
from shoal.protocol import looking
from shoal.protocol.directions import answered
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.messages import Message
from shoal.scheduler.shell.operations import looking as operations


class Looks:
    """Coroutines, to be awaited on the scheduler's loop, as they ask the workers."""

    async def get_cluster_state(self, exclude: Collection[str] = ()) -> dict[str, Any]:
        """All that the scheduler and its workers know, in plain types.

        Args:
            exclude: names of fields to leave out.
        """
        from shoal.observe import dumps  # only here, as it is rare

        picture = await operations.whole_picture(self._as_host(), exclude)
        state: dict[str, Any] = await asyncio.to_thread(dumps.in_plain_types, picture)
        return state

    async def dump_cluster_state_to_url(
        self,
        url: str,
        exclude: Collection[str] = (),
        format: str = "msgpack",
        **storage_options: Any,
    ) -> None:
        """Write all that is known to a file; see `Client.dump_cluster_state`.

        Raises:
            UnknownDumpFormat: the format is none of ours.
            OSError: it can't be written there.
        """
        from shoal.observe import dumps  # only here, as it is rare

        get_state = partial(operations.whole_picture, self._as_host(), exclude)
        await dumps.write_state(get_state, url, format, **storage_options)

    async def get_call_stack(
        self, keys: Iterable[object] | None = None
    ) -> dict[str, dict[object, tuple[str, ...]]]:
        """Worker → key of each task that runs there → its frames; of `keys`, or of all."""
        asked = None if keys is None else [to_canonical(key) for key in keys]
        call = looking.CallStacks(0, asked)
        found = _value(call, await operations.on_call_stacks(self._as_host(), call))
        return {
            worker: {from_canonical(key): tuple(frames) for key, frames in stacks.items()}
            for worker, stacks in found.items()
        }

    async def benchmark_hardware(self) -> dict[str, dict[str, float]]:
        """Bytes per second of disks, memory and network, by size; see the client's."""
        call = looking.HardwareSpeeds(0)
        found: dict[str, dict[str, float]] = _value(
            call, await operations.on_hardware_speeds(self._as_host(), call)
        )
        return found

    def versions(self, packages: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """What is installed here: `host` and `packages`."""
        return get_versions(packages)

    def _as_host(self) -> Any:
        return self


def _value(call: Message, answer: Any) -> Any:
    """What an operation answers."""
    return answered(type(call), answer)
