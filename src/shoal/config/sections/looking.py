"""Settings of what is remembered and shown."""

from typing import Annotated, ClassVar

from shoal.config.base import AtLeastZero, Positive, Settings


class Histories(Settings, frozen=True, kw_only=True):
    """What is remembered, and how much of it."""

    path: ClassVar[str] = "histories"

    log_records_max: Annotated[int, Positive] = 10_000
    """Log records kept in memory by each process."""

    story_records_max: Annotated[int, Positive] = 1_000
    """Events kept per topic, and transitions in a report."""

    computations_max: Annotated[int, AtLeastZero] = 100
    """Submissions that are remembered, with what was computed for each."""

    errors_max: Annotated[int, AtLeastZero] = 100
    """Failed tasks that are remembered, with their errors."""


class Logs(Settings, frozen=True, kw_only=True):
    """What services write to their logs."""

    path: ClassVar[str] = "logs"

    format: str = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
    """How a line is written, in the words of Python's `logging`."""


class Dashboard(Settings, frozen=True, kw_only=True):
    """The web page and the metrics."""

    path: ClassVar[str] = "dashboard"

    link: str = "{scheme}://{host}:{port}/status"
    """How to write the page's address; any environment variable may be named as well."""

    hosts: list[str] = []
    """Names of proxies that lead to a page on loopback; under other names it is not served."""

    prometheus_namespace: str = "dask"
    """First word of every metric."""

    graph_tasks_max: Annotated[int, Positive] = 5_000
    """A graph with more tasks isn't drawn."""
