"""Verbs: event in, messages out; the only writer of a task's state."""
