"""The version of shoal: the one place that says it."""

VERSION = "0.1.0"

DROP_IN_MARK = "as shoal has it"
"""Stands in the first line of every module of the drop-in, so that it is known without import."""
