"""Having the cluster follow its load, whether or not the client has its object."""

from __future__ import annotations

from typing import Any

from shoal.client.lifecycle import ClientBase
from shoal.protocol.scaling import AdaptCluster


class Scaling(ClientBase):
    """`adapt`."""

    async def adapt(
        self, minimum: int | None = None, maximum: float | None = None, **kwargs: Any
    ) -> Any:
        """Let the number of workers follow the load; what did so before is stopped.

        Args:
            minimum, maximum: of workers; None: as is set, and that is from 0 on, without end.
            kwargs: as for `adapt` of a cluster: `interval`, `wait_count`, `target_duration`,
                `spare`, `minimum_cores`, ...; numbers and texts, where only the scheduler is known.

        Returns:
            What the cluster's `adapt` returns, if the client was made of the cluster; else a line
            that says what is done.

        Raises:
            ValueError, TypeError: an argument makes no sense.
            NobodyScales: a RuntimeError; the scheduler was not started by a cluster.
        """
        options = {"minimum": minimum, "maximum": maximum, **kwargs}
        if self.cluster is not None:
            return self.cluster.adapt(**options)
        return await self.session.call(lambda request: AdaptCluster(request, options))
