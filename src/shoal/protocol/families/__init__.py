"""How values of particular types become bytes where plain pickle can't do it, or not as well.

`registry` has what programs teach a process, `pickling` brings it into every pickle, `named` into
those of clients that name families, and each of the other modules teaches one library's types, once
that library is in use.
"""

from shoal.protocol.families import pickling as pickling
