"""`print` and `warn`, which tasks may call: what they say appears where the task runs."""

from builtins import print
from warnings import warn

__all__ = ["print", "warn"]
