"""What clients and tasks of one cluster agree on by name; one file for each kind of it.

`named` is what all have in common, `claimed` what those have that are held and let go of.
"""

from shoal.client.coordination.lock import Lock

__all__ = ["Lock"]
