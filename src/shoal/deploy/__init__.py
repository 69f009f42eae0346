"""Clusters that start their own scheduler and workers: on this machine, and on others."""

# First, so that it ends last: at exit, clusters close before the processes that they come from.
import shoal.nanny.zygotes  # noqa: F401
