"""The environment of workers' processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.observe.hooks import NannyPlugin


class Environ(NannyPlugin):
    """Sets variables in the environment of all workers that have a nanny, and starts them anew."""

    restart = True

    def __init__(self, environ: Mapping[str, Any] | None = None) -> None:
        """`environ`: values become text."""
        self.environ = {name: str(value) for name, value in (environ or {}).items()}

    def setup(self, nanny: Any) -> None:
        """The next process has them."""
        nanny.env.update(self.environ)
