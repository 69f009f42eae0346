"""How ports are shared by several workers and their nannies, as `dask worker` of old did it."""

from __future__ import annotations

from typing import Any

Ports = str | int | None
Share = int | list[int] | None


def apportion_ports(
    worker_port: Ports, nanny_port: Ports, n_workers: int, nanny: bool
) -> list[dict[str, Any]]:
    """Keyword arguments of each worker, or nanny: its ports, all of them its own.

    Args:
        worker_port, nanny_port: one, or a range such as "9000:9009"; None or 0: any free one.

    Raises:
        ValueError: there are not enough, or a text is no port and no range.
    """
    workers, nannies = _parsed(worker_port), _parsed(nanny_port)
    if not nanny:
        _shared(nannies, n_workers)  # which may be too few
        return [{"port": share} for share in _shared(workers, n_workers)]
    if isinstance(workers, list) and isinstance(nannies, list):
        workers, nannies = _told_apart(workers, nannies)
    pairs = zip(_shared(nannies, n_workers), _shared(workers, n_workers), strict=True)
    return [{"port": port, "worker_port": worker_port} for port, worker_port in pairs]


def _parsed(port: Ports) -> Share:
    if port is None or port in (0, "0"):
        return None if port is None else 0
    if isinstance(port, int) or ":" not in port:
        return [int(port)]
    first, last = map(int, port.split(":"))
    if last <= first:
        raise ValueError(f"port_stop must be greater than port_start, as it is not in {port!r}")
    return list(range(first, last + 1))


def _told_apart(workers: list[int], nannies: list[int]) -> tuple[list[int], list[int]]:
    """Each port that both may have goes to who has fewer."""
    both = sorted({*workers} & {*nannies})
    of_workers = [port for port in workers if port not in both]
    of_nannies = [port for port in nannies if port not in both]
    for port in both:
        (of_workers if len(of_workers) <= len(of_nannies) else of_nannies).append(port)
    return sorted(of_workers), sorted(of_nannies)


def _shared(ports: Share, n: int) -> list[Share]:
    if not isinstance(ports, list):
        return [ports] * n
    if len(ports) < n:
        raise ValueError(f"Not enough ports in range: {len(ports)} for {n} workers")
    shares = [ports[index::n] for index in range(n)]
    return [share[0] if len(share) == 1 else share for share in shares]
