"""What a cluster that adapts has decided, and why: a line for people."""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.protocol.scaling import Deserved
from shoal.units import format_seconds


class Decision(NamedTuple):
    """One look: what it came to, and what it was based on."""

    at: float
    """Seconds, wall clock."""
    target: int
    """Workers that there shall be, within the bounds."""
    nplanned: int
    nthere: int
    recommendation: dict[str, Any]
    minimum: int
    maximum: float
    spare: int = 0
    found: Deserved | None = None
    """What the scheduler said; None: the target is somebody else's."""
    target_seconds: float = 0.0
    wait_seconds: float = 0.0
    """Until a worker that could go has been spare for as long as a start takes."""
    failure: str = ""
    """What kept workers from coming, in a line."""

    @property
    def status(self) -> str:
        """`up`, `down` or `same`."""
        return str(self.recommendation["status"])

    def __str__(self) -> str:
        parts = [f"target {self.target}{_in_brackets(self._reasons())}", f"have {self.nthere}"]
        nmissing = self.nplanned - self.nthere
        if nmissing > 0:
            parts.append(f"waiting for {nmissing}")
        nspare = self.nplanned - self.target
        if nspare > 0 and self.status == "same":
            left = f" for {format_seconds(self.wait_seconds)} yet" if self.wait_seconds else ""
            parts.append(f"keeping {nspare} that could go{left}")
        if self.failure:
            parts.append(f"the latest start failed: {self.failure}")
        return ", ".join(parts)

    def _reasons(self) -> list[str]:
        reasons = self._load()
        if self.spare:
            reasons.append(f"{self.spare} spare")
        if self.target == self.minimum:
            reasons.append("the minimum")
        elif self.target == self.maximum:
            reasons.append("the maximum")
        return reasons

    def _load(self) -> list[str]:
        found = self.found
        if found is None:
            return []
        reasons = ["nothing to do"]
        if found.ntasks:
            work, within = format_seconds(found.work_seconds), format_seconds(self.target_seconds)
            tasks = "1 task" if found.ntasks == 1 else f"{found.ntasks} tasks"
            reasons = [f"{tasks}: {work} of work to be done in {within}"]
        if found.for_memory > found.for_work:
            share = found.held_bytes / found.limit_bytes
            reasons.append(f"results take {share:.0%} of the memory")
        if found.npaused and found.ntasks:
            reasons.append(f"{found.npaused} are paused")
        if found.nkept > found.nworkers:
            reasons.append(f"{found.nkept} have work, or results that are wanted")
        return reasons


def _in_brackets(reasons: list[str]) -> str:
    return f" ({', '.join(reasons)})" if reasons else ""
