"""Clusters that start their own scheduler and workers: on this machine, and later elsewhere."""
