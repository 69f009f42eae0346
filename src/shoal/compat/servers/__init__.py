"""`distributed.core`: servers of programs' own, and calls by name to them and to a cluster's.

They speak over the comms of `shoal.compat.comm`: dicts with the name of an operation as `op`.
calling (one call over one comm; rpc), pool (comms that are kept for the next call), conversing (the
other side: what is heard is done and answered), server (one that a program made), guests (comms
that came to a scheduler or a worker).
"""
