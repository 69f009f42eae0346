"""The scheduler's numbers, from arguments and from the configuration."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shoal import config
from shoal.observe.preloading import Preloads, process_preloads
from shoal.scheduler.model.settings import SchedulerSettings

REDUCE_REPLICAS: Final = (
    "distributed.active_memory_manager.ReduceReplicas",
    "shoal.compat.active_memory.ReduceReplicas",
)
"""What settings call the policy that drops copies which nobody needs."""


def preloads_of(
    scheduler: Any, preload: str | Sequence[str] | None, argv: Sequence[Any]
) -> Preloads:
    """What is to run in the scheduler's process before it does anything; None: as is set.

    Raises:
        ImportError, PreloadFailed, BaseException: one can't be found, or raises.
    """
    if preload is None:
        settings = config.read(config.Scheduler)
        preload, argv = settings.preload, argv or settings.preload_argv
    return process_preloads(scheduler, preload, argv)


def are_plain(policies: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the machine itself does all that these policies for copies ask for."""
    return bool(policies) and all(
        policy.get("class") in REDUCE_REPLICAS and len(policy) == 1 for policy in policies
    )


def settings_of(**given: Any) -> tuple[config.Scheduler, SchedulerSettings]:
    """What is set for a scheduler that starts now, and what of it its machine reads.

    Args:
        given: arguments, which win unless they are None.

    Raises:
        SettingError: a value that makes no sense, with its name.
    """
    scheduler = config.read(config.Scheduler, **given)
    return scheduler, _for_machine(scheduler)


def _or_never(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds


def _silence(seconds: float | None, heartbeat_seconds: float) -> float:
    """What is too long for somebody who should have given a sign of life twice by then."""
    return max(_or_never(seconds), 2 * heartbeat_seconds)


def _for_machine(scheduler: config.Scheduler) -> SchedulerSettings:
    replicas = config.read(config.Replicas)
    memory = config.read(config.Memory)
    histories = config.read(config.Histories)
    return SchedulerSettings(
        allowed_failures=scheduler.allowed_failures,
        worker_saturation=scheduler.worker_saturation,
        pipe_seconds=scheduler.pipe_seconds,
        unknown_duration_seconds=scheduler.unknown_task_seconds,
        known_seconds=scheduler.default_task_durations,
        known_bytes=scheduler.default_task_memory,
        memory_pause_ratio=memory.pause_ratio or 1.0,
        memory_target_ratio=memory.target_ratio,
        no_workers_seconds=scheduler.no_workers_timeout_seconds,
        stranded_warning_seconds=scheduler.stranded_warning_seconds,
        shares=scheduler.shares,
        limits=scheduler.limits,
        moves_work=config.read(config.Stealing).enabled,
        inline_bytes_max=scheduler.inline_bytes_max,
        bandwidth_bytes_per_second=float(scheduler.bandwidth_bytes),
        worker_ttl_seconds=_or_never(scheduler.worker_ttl_seconds),
        client_ttl_seconds=_silence(
            scheduler.client_ttl_seconds, config.read(config.Client).heartbeat_seconds
        ),
        suspect_seconds=_silence(
            scheduler.suspect_seconds, config.read(config.Worker).heartbeat_seconds
        ),
        topic_events_max=histories.story_records_max,
        departed_topic_seconds=scheduler.events_cleanup_seconds,
        reduces_replicas=replicas.enabled and are_plain(replicas.policies),
        reduction_seconds=replicas.interval_seconds,
        replica_measure=replicas.measure,
        rebalance_measure=replicas.rebalance_measure,
        rebalance_sender_ratio=replicas.rebalance_sender_ratio,
        rebalance_recipient_ratio=replicas.rebalance_recipient_ratio,
        rebalance_gap_ratio=replicas.rebalance_gap_ratio,
        quarantine_failures=scheduler.quarantine_failures,
        orphan_seconds=scheduler.orphan_seconds,
        recovery_seconds=scheduler.recovery_seconds,
        heartbeat_seconds=config.read(config.Worker).heartbeat_seconds,
    )
