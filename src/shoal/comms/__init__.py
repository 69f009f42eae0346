"""Ways to a peer: authenticated, ordered, non-blocking; below the shells, and knowing no role.

`connect` and `listen` (endpoints) give a `Connection` (transport) over TCP or Unix sockets
(sockets), or within a process (inproc).
"""

from shoal.comms.admission import AdmissionLimits as AdmissionLimits
from shoal.comms.authority import Publication as Publication
from shoal.comms.authority import environment_token as environment_token
from shoal.comms.authority import find_token as find_token
from shoal.comms.authority import new_token as new_token
from shoal.comms.authority import publish_token as publish_token
from shoal.comms.authority import require_token as require_token
from shoal.comms.authority import user_token as user_token
from shoal.comms.calls import PendingCalls as PendingCalls
from shoal.comms.endpoints import connect as connect
from shoal.comms.endpoints import listen as listen
from shoal.comms.errors import AddressError as AddressError
from shoal.comms.errors import AuthenticationError as AuthenticationError
from shoal.comms.errors import CallTimeoutError as CallTimeoutError
from shoal.comms.errors import CommClosedError as CommClosedError
from shoal.comms.errors import ConnectError as ConnectError
from shoal.comms.errors import FrameTooLarge as FrameTooLarge
from shoal.comms.errors import ListenError as ListenError
from shoal.comms.errors import OutcomeUnknown as OutcomeUnknown
from shoal.comms.errors import ProtocolError as ProtocolError
from shoal.comms.errors import TokenFileError as TokenFileError
from shoal.comms.transport import Connection as Connection
from shoal.comms.transport import Listener as Listener
