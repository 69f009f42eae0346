"""`distributed.comm`: connections of programs' own, between ends that they made themselves.

They stand on `shoal.comms`: the same sockets, the same frames, and the same proof of a token before
a byte is parsed.  core (what a comm, connector and listener are; connect, listen), mailbox (what
came and was not read yet), handshaking (who the peer is, and what it can), carried (a comm over a
connection of ours), tcp and inproc (the two of them), registry (who carries a scheme), carrying
(shoal's own connections over a third party's comm), addressing, batched.
"""

from shoal.compat.comm import registry as registry
