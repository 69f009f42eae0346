"""The part of a cluster that lets the number of its workers follow the load."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any, Final

from shoal import config
from shoal.deploy.adaptive import Adaptive
from shoal.deploy.deciding import Decision
from shoal.deploy.faces import CORRECTION
from shoal.observe.logs import RecentLogs
from shoal.units import to_nbytes

_logger: Final = logging.getLogger("shoal.deploy.adaptive")


class Adapting:
    """`adapt`, and what it needs of a cluster.  A cluster that never adapts pays nothing."""

    name: str
    scale: Callable[..., Any]
    scheduler: Any
    _background: Any
    _recent_logs: RecentLogs | None

    _adaptive: Any = None
    """What looks at the load; None: nobody does."""
    _adaptive_options: Mapping[str, Any] = MappingProxyType({})
    """For the next `adapt`, which takes what is not given from here."""

    def adapt(self, Adaptive: Any = Adaptive, **kwargs: Any) -> Any:  # noqa: N803 -- upstream's
        """Let the number of workers follow the load; what did so before is stopped.

        Args:
            Adaptive: the class that decides; see its parameters.
            kwargs: of it.  What is not given is as it was given the last time.

        Returns:
            What looks at the load: it shows what it has decided and why, and has `stop()`.

        Raises:
            ValueError, TypeError: an argument makes no sense.
        """
        options = {**self._adaptive_options, **kwargs}
        adaptive = Adaptive(self, **options)
        self._stop_adapting("another takes its place")
        self._adaptive_options = options
        self._adaptive = adaptive
        return adaptive

    def _stop_adapting(self, reason: str) -> None:
        adaptive, self._adaptive = self._adaptive, None
        if adaptive is not None:
            adaptive.stop(reason=reason)

    @property
    def _started_scheduler(self) -> Any:
        """The scheduler, or its process, as it was started; None: it runs elsewhere."""
        return self.scheduler

    @property
    def _is_scaling(self) -> bool:
        """Whether workers are being started or ended just now."""
        return any(task.get_name() == CORRECTION for task in self._background)

    @property
    def _key_of_groups(self) -> Callable[[Any], Any] | None:
        """Which workers can only go together; None: each goes by itself."""
        return None

    def _whole_groups(self, names: Sequence[Any]) -> list[list[Any]]:
        """Those of `names` that can go, in groups that go together."""
        return [[name] for name in names]

    def _size_of_new(self, option: str) -> float:
        """`nthreads` or `memory_limit` (bytes) of a worker that would be started; 0: not known."""
        return 0.0

    def _scale_to(self, nworkers: int) -> Any:
        """As `scale`, but workers are counted, whatever they come in."""
        return self.scale(nworkers)

    def _tell_of_scaling(self, decision: Decision) -> None:
        """Into the cluster's log, whether or not anything else hears of it."""
        said = "grows" if decision.status == "up" else "shrinks"
        arguments = self.name, said, decision
        text = "The cluster %s %s: %s"
        if _logger.isEnabledFor(logging.INFO):
            _logger.info(text, *arguments)
        elif self._recent_logs is not None:
            record = _logger.makeRecord(
                _logger.name, logging.INFO, __file__, 0, text, arguments, None
            )
            self._recent_logs.handle(record)

    @property
    def _scaling_html(self) -> str:
        if self._adaptive is None:
            return ""
        return f"<br>Scaling: <code>{escape(repr(self._adaptive))}</code>"


class AdaptingBySize(Adapting):
    """The same where it is known how large a new worker is."""

    def adapt(
        self,
        Adaptive: Any = Adaptive,  # noqa: N803 -- upstream's
        minimum: int | None = None,
        maximum: float | None = None,
        minimum_cores: float | None = None,
        maximum_cores: float | None = None,
        minimum_memory: float | str | None = None,
        maximum_memory: float | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Let the number of workers follow the load; what did so before is stopped.

        Args:
            Adaptive: the class that decides; see its parameters.
            minimum, maximum: of workers; None: as is set, and that is from 0 on, without end.
            minimum_cores, maximum_cores: of threads of all workers together.
            minimum_memory, maximum_memory: of all workers together, in bytes or as "100GB".
            kwargs: of `Adaptive`: `interval`, `wait_count`, `target_duration`, `spare`, ...  Those
                that are not given are as they were given the last time.

        Returns:
            What looks at the load: it shows what it has decided and why, and has `stop()`.

        Raises:
            ValueError, TypeError: an argument makes no sense; or cores or memory are given, and
                it is not known how much a new worker has.
        """
        settings = config.read(config.Adaptive)
        least = [settings.minimum if minimum is None else minimum]
        most = [settings.maximum if maximum is None else maximum]
        if minimum_cores is not None:
            least.append(math.ceil(minimum_cores / self._each("nthreads")))
        if minimum_memory is not None:
            least.append(math.ceil(to_nbytes(minimum_memory) / self._each("memory_limit")))
        if maximum_cores is not None:
            most.append(math.floor(maximum_cores / self._each("nthreads")))
        if maximum_memory is not None:
            most.append(math.floor(to_nbytes(maximum_memory) / self._each("memory_limit")))
        return super().adapt(Adaptive, minimum=max(least), maximum=min(most), **kwargs)

    def _each(self, option: str) -> float:
        """How much of something a new worker has.  Raises ValueError: that is not known."""
        size = self._size_of_new(option)
        if not size:
            raise ValueError(f"New workers have no {option}=, so the cluster is sized by n=.")
        return size
