"""What clients and tasks of one cluster agree on by name; one file for each kind of it.

`named` is what all have in common, `claimed` what those have that are held and let go of, `values`
how values travel, `described` what the scheduler tells of who holds what.
"""

from shoal.client.coordination.channel import Pub, Sub
from shoal.client.coordination.event import Event
from shoal.client.coordination.lock import Lock
from shoal.client.coordination.multi_lock import MultiLock
from shoal.client.coordination.queue import Queue
from shoal.client.coordination.semaphore import Semaphore
from shoal.client.coordination.variable import Variable

__all__ = ["Event", "Lock", "MultiLock", "Pub", "Queue", "Semaphore", "Sub", "Variable"]
