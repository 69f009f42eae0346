"""The names of things: what identifies a task, a run, a worker, a client.

They are distinct types to the checker and plain `str` or `int` at run time, so they cost nothing
and can't be mixed up.  Integers are valid within one scheduler epoch only; a `Key` is for ever.
"""

from typing import NewType

Key = NewType("Key", str)
"""The canonical name of a task and of its result, as it travels and as people see it."""

TaskId = NewType("TaskId", int)
"""A task's number in one scheduler epoch; what messages say instead of the key."""

RunId = NewType("RunId", int)
"""One assignment of a task to a worker: the fencing token that every answer carries."""

WorkerId = NewType("WorkerId", int)
"""A worker's number in one scheduler epoch; never reused, so it is its incarnation as well."""

ClientId = NewType("ClientId", int)
"""A client's number in one scheduler epoch."""

Epoch = NewType("Epoch", int)
"""One life of a scheduler; integers of another epoch mean nothing."""

CodeId = NewType("CodeId", int)
"""A function, or a bundle of graph tasks pickled together, that many runs share.

On the client's connection it is the client's own number, on a worker's the scheduler's.
"""

ClientTaskId = NewType("ClientTaskId", int)
"""A client's own number of a task that it submitted or asked for; never used again by that client.

A new want of a known key gets a new number, so a late release can't touch a newer want.
"""

JournalId = NewType("JournalId", int)
"""A number of a task, or of a code, in a scheduler's journal; valid as long as that is."""

RequestId = NewType("RequestId", int)
"""Ties a reply to its call, on one connection."""

Address = NewType("Address", str)
"""Where to connect, e.g. `tcp://10.0.0.1:8786`, `unix:///run/shoal.sock`, `inproc://1`."""
