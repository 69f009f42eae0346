"""What the asynchronous client can do, one file for each subject; all of it by hand.

Methods that only say something (`submit`, `map`) return at once and may be called from any
thread.  Coroutines wait on the session's loop.  Methods marked `finishes` do their work in the
caller's thread and return a coroutine of the rest, which the blocking client runs to its end.

A subject is a class on `ClientBase`, named in the table of `tools/make_blocking.py`, which writes
`AsyncClient`, the blocking method of each of its methods, and `Client`.
"""
