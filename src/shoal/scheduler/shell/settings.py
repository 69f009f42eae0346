"""The scheduler's numbers, from arguments and from the configuration."""

from typing import Any

from shoal import config
from shoal.scheduler.model.settings import SchedulerSettings


def read_settings(**given: Any) -> SchedulerSettings:
    """Settings for a scheduler that starts now; an argument that is not None wins.

    Raises:
        SettingError: a value that makes no sense, with its name.
    """
    scheduler = config.read(config.Scheduler, **given)
    ttl_seconds = scheduler.worker_ttl_seconds
    return SchedulerSettings(
        allowed_failures=scheduler.allowed_failures,
        worker_saturation=scheduler.worker_saturation,
        pipe_seconds=scheduler.pipe_seconds,
        unknown_duration_seconds=scheduler.unknown_task_seconds,
        inline_bytes_max=scheduler.inline_bytes_max,
        bandwidth_bytes_per_second=float(scheduler.bandwidth_bytes),
        worker_ttl_seconds=float("inf") if ttl_seconds is None else ttl_seconds,
        heartbeat_seconds=config.read(config.Worker).heartbeat_seconds,
    )
