"""Other processes and other versions: a second client, and what an older or newer patch is told."""

from tools.accept.figure import GATES, Figure
from tools.accept.gates_cluster import tests_pass


@GATES.register("second clients")
def second_clients() -> Figure:
    """A client in another process, of both faces: it shares, dies, and comes back."""
    return tests_pass("a second client shares, dies and comes back", SECOND)


@GATES.register("versions")
def versions() -> Figure:
    """Clients, workers and clusters of changed sources: they work, or one message says why not."""
    return tests_pass("other versions work, or one clear message", *VERSIONS)


SECOND = "tests/cluster/test_second_clients.py"
VERSIONS = (
    "tests/cluster/test_versions.py",
    "tests/unit/protocol/test_handshake.py",
    "tests/unit/protocol/test_codec.py",
)
