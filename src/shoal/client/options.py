"""What users may say about tasks and connections, checked and brought into one form."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from datetime import timedelta
from numbers import Real
from typing import Any, NamedTuple, overload

import dask
import dask.config

from shoal import config
from shoal.client.errors import SchedulerFileLate
from shoal.comms.scheduler_file import read_scheduler_file
from shoal.errors import UnsupportedOption
from shoal.ids import Key
from shoal.observe.inside import current_task
from shoal.protocol.handshake import Keyring
from shoal.protocol.messages import TaskOptions
from shoal.protocol.operations import worker_names
from shoal.units import to_count, to_nbytes, to_seconds

_logger = logging.getLogger("shoal.client")
_dask: Any = dask  # it ships annotations for half of its functions


class Target(NamedTuple):
    """Where a client shall connect to."""

    address: str
    token: bytes | None  # None: to be looked up
    cluster: Any


def task_options(
    *,
    priority: float = 0,
    retries: int | None = None,
    workers: Any = None,
    allow_other_workers: bool | None = None,
    resources: Mapping[str, float] | None = None,
    actor: bool = False,
    executor: str | None = None,
    limits: Any = None,
    memory: Any = None,
    timeout: Any = None,
    inside: str | None = None,
    of_graph: bool = False,
    is_all_said: bool = False,
) -> TaskOptions | None:
    """Options as they travel; None if they are all as usual.  Annotations fill what is not given.

    Args:
        inside: the task that submits; None: the calling one, if there is any.
        of_graph: annotations that are functions of the key are left to whoever knows the keys.
        is_all_said: annotations are not looked at.

    Raises:
        TypeError, ValueError: an option that makes no sense.
    """
    annotations = {} if is_all_said else _dask.get_annotations()
    if annotations and of_graph:
        annotations = {name: said for name, said in annotations.items() if not callable(said)}
    if annotations:
        priority = priority or annotations.get("priority", 0)
        retries = annotations.get("retries") if retries is None else retries
        workers = annotations.get("workers") if workers is None else workers
        resources = annotations.get("resources") if resources is None else resources
        executor = annotations.get("executor") if executor is None else executor
        limits = annotations.get("limits") if limits is None else limits
        memory = annotations.get("memory") if memory is None else memory
        timeout = annotations.get("timeout") if timeout is None else timeout
        if allow_other_workers is None:
            allow_other_workers = annotations.get("allow_other_workers")
    if allow_other_workers not in (True, False, None):
        raise TypeError(f"allow_other_workers is True or False, not {allow_other_workers!r}")
    if inside is None:
        task = current_task.get()
        inside = "" if task is None else task.key
    said = priority or retries or workers is not None or resources or executor or actor or limits
    if not (said or inside or memory or timeout):
        return None
    return TaskOptions(
        priority=_priority_of(priority),
        retries=0 if retries is None else to_count("retries", retries),
        workers=worker_names(workers),
        allow_other_workers=bool(allow_other_workers),
        resources=_amounts_of(resources) if resources else {},
        actor=actor,
        executor=_executor_of(executor),
        inside=Key(inside),
        limits=_limits_of(limits) if limits else {},
        memory=_memory_of(memory) if memory else 0,
        timeout=_timeout_of(timeout) if timeout else 0.0,
    )


def _executor_of(executor: object) -> str:
    """What runs a task, of what its worker has for that; "" is whatever it has for all."""
    if executor is None:
        return ""
    if not isinstance(executor, str):
        raise TypeError(f"executor is the name of one of the worker's, not {executor!r}")
    return "" if executor == "default" else executor


def _amounts_of(resources: object) -> dict[str, float]:
    """What a task needs of its worker; amounts of nothing are left out.

    Raises:
        TypeError, ValueError: these are no amounts.
    """
    if not isinstance(resources, Mapping):
        raise TypeError(f"resources= are amounts by name, such as {{'GPU': 1}}, not {resources!r}")
    amounts: dict[str, float] = {}
    for name, amount in resources.items():
        if isinstance(amount, bool) or not isinstance(amount, Real):
            raise TypeError(f"The resource {name!r} is an amount, not {amount!r}")
        number = float(amount)
        if not 0 <= number < math.inf:
            raise ValueError(f"The resource {name!r} is an amount from 0 on, not {amount!r}")
        if number:
            amounts[str(name)] = number
    return amounts


def _memory_of(memory: object) -> int:
    """By how many bytes a worker grows for a run.

    Raises:
        TypeError, ValueError: this is no size.
    """
    if isinstance(memory, bool) or not isinstance(memory, (str, Real)):
        raise TypeError(
            f"memory= is what a run takes of its worker, in bytes or as '2 GiB', not {memory!r}"
        )
    nbytes = float(memory) if isinstance(memory, Real) else to_nbytes(memory)
    if not 0 <= nbytes < math.inf:
        raise ValueError(f"memory= is a number of bytes from 0 on, not {memory!r}")
    return int(nbytes)


def _timeout_of(timeout: object) -> float:
    """How many seconds a run may take; 0 is as long as it likes.

    Raises:
        TypeError, ValueError: this is no duration.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (str, Real, timedelta)):
        raise TypeError(
            f"timeout= is how long a run may take, in seconds or as '5 minutes', not {timeout!r}"
        )
    seconds = float(timeout) if isinstance(timeout, Real) else to_seconds(timeout)
    if not seconds > 0:
        raise ValueError(f"timeout= is a duration above 0, or None for no limit, not {timeout!r}")
    return seconds if seconds < math.inf else 0.0


def _limits_of(limits: object) -> dict[str, int]:
    """How many tasks of each name may run at once, as it travels: 0 is as is set elsewhere.

    Raises:
        TypeError, ValueError: these are no such numbers.
    """
    if isinstance(limits, str):
        limits = [limits]
    if isinstance(limits, (list, tuple, set, frozenset)):
        limits = dict.fromkeys(limits)
    if not isinstance(limits, Mapping):
        raise TypeError(
            "limits= is how many tasks of each name may run at once, such as {'db': 8}, or names "
            f"for which that is set elsewhere, not {limits!r}"
        )
    numbers: dict[str, int] = {}
    for name, number in limits.items():
        numbers[str(name)] = 0 if number is None else to_count(f"limits[{name!r}]", number)
        if number is not None and not numbers[str(name)]:
            raise ValueError(
                f"The limit {name!r} is a number from 1 on, or None, which is as is set elsewhere; "
                f"not {number!r}, as then none of these tasks could ever run"
            )
    return numbers


def _priority_of(priority: object) -> float:
    if priority is None:
        return 0.0
    if not isinstance(priority, Real):
        raise TypeError(f"priority is a number, larger is sooner, not {priority!r}")
    if math.isnan(priority):
        raise ValueError(f"priority is a number that others can be compared with, not {priority!r}")
    return float(priority)


def find_target(address: Any, scheduler_file: str | None, timeout_seconds: float) -> Target | None:
    """The scheduler that the user means; None if none is named anywhere.

    May wait for the scheduler file, so not to be called on a loop that has other work.

    Raises:
        TypeError: the address is of no kind that we know.
        RuntimeError: the cluster is closed.
        SchedulerFileLate: the file did not appear.
        TokenFileError: it holds a token, and isn't for our eyes only.
    """
    if address is None and scheduler_file is not None:
        return _read_scheduler_file(scheduler_file, timeout_seconds)
    if address is None:
        address = dask.config.get("scheduler-address", None)
        if address is not None:
            _logger.info("Config value `scheduler-address` found: %s", address)
    if address is None:
        return None
    if isinstance(address, str):
        return Target(address, None, None)
    found = getattr(address, "scheduler_address", None)
    if isinstance(found, str):
        require_open(address)
        return Target(found, getattr(address, "token", None) or None, address)
    raise TypeError(
        f"Scheduler address must be a string or a Cluster instance, got {type(address)}. None "
        "means the setting `scheduler-address`, or else a cluster that is made for the client."
    )


def has_own_scheduler(target: Target) -> bool:
    """Whether the scheduler is one of this process, or ends with its cluster: none comes back."""
    is_here = target.address.startswith("inproc:")
    return is_here or bool(getattr(target.cluster, "ends_with_scheduler", False))


def require_open(address: Any) -> None:
    """Raise RuntimeError for a cluster that is closed, or about to be."""
    status = str(getattr(address, "status", "running")).rpartition(".")[2]
    if status in ("closing", "closed"):
        raise RuntimeError(
            f"Trying to connect to an already closed or closing Cluster {address!r}: start a new "
            "one."
        )


def keyring_of(security: Any, token: bytes | None) -> Keyring | None:
    """The keys that the user gave; None if they are to be looked up by the address.

    Raises:
        TypeError: `security` is of no kind that we know.
        UnsupportedOption: it asks for certificates.
    """
    if isinstance(security, Keyring):
        return security
    if isinstance(security, bytes):
        return Keyring.from_token(security)
    if security in (None, False, True):
        return None if token is None else Keyring.from_token(token)
    found = getattr(security, "token", None)
    if isinstance(found, bytes):
        return Keyring.from_token(found)
    if isinstance(security, dict) or hasattr(security, "get_connection_args"):
        if not getattr(security, "require_encryption", security):
            return None if token is None else Keyring.from_token(token)
        raise UnsupportedOption("security with certificates", "Connect with a token instead.")
    raise TypeError(
        "security= is None, a bool, a token (bytes) or something with a `token`, "
        f"not {type(security).__name__}"
    )


def connect_seconds(timeout: Any) -> float:
    """The deadline for connecting; the setting if none is given."""
    given = None if timeout is None else to_seconds(timeout)
    return float(config.read(config.Comm, connect_seconds=given).connect_seconds)


@overload
def seconds_or(timeout: Any, default: float) -> float: ...
@overload
def seconds_or(timeout: Any, default: None) -> float | None: ...
def seconds_or(timeout: Any, default: float | None) -> float | None:
    """`timeout` in seconds, or the default for None."""
    return default if timeout is None else to_seconds(timeout)


def _read_scheduler_file(path: str, timeout_seconds: float) -> Target:
    end = time.monotonic() + timeout_seconds
    while (found := read_scheduler_file(path)) is None:  # not there yet, or half written
        if time.monotonic() > end:
            raise SchedulerFileLate(path, timeout_seconds)
        time.sleep(0.01)
    return Target(found.address, found.token, None)
