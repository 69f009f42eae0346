"""The client as an executor of the standard library."""

from __future__ import annotations

from typing import Any

from shoal.client.executor import ClientExecutor
from shoal.client.lifecycle import ClientBase


class Executors(ClientBase):
    """`get_executor`."""

    def get_executor(self, **kwargs: Any) -> ClientExecutor:
        """A `concurrent.futures` executor that runs its calls on the cluster.

        Args:
            kwargs: for all its calls, as for `submit`: pure, workers, resources,
                allow_other_workers, retries.

        Raises:
            TypeError: an argument is none of those.
        """
        return ClientExecutor(self.face, **kwargs)
