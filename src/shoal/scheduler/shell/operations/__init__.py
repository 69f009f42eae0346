"""Calls that need more than the machine, by subject: user functions, workers, other connections."""
