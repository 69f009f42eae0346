"""What was closed is opened again, and nothing else is touched."""

from tests.programs import run_python

CLOSED = """
import os
from shoal.worker.shell.descriptors import reopen_standard

other, _ = os.pipe()
os.close(1)
reopen_standard()
assert os.path.samestat(os.fstat(1), os.stat(os.devnull))
assert os.get_inheritable(1)
assert os.write(1, b"to nowhere") == 10
reopen_standard()
os.fstat(other)
os.write(2, b"still there")
"""


def test_a_standard_descriptor_that_was_closed_leads_to_nowhere() -> None:
    """The others stay what they are."""
    done = run_python("-c", CLOSED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "still there")
