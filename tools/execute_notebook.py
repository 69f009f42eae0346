"""Execute a notebook in a kernel of its own, and print what its cells put out, as JSON.

    python tools/execute_notebook.py examples/flights.ipynb

The notebook itself is not changed.  Exit status 1 if a cell raises, with its error in the output.
"""

import json
import sys

import nbclient
import nbformat
from traitlets.config import Config

CELL_SECONDS_MAX = 120
LOCAL = Config({"KernelManager": {"transport": "ipc"}})
"""The kernel is spoken to by sockets of this user, not by ports that anybody may try."""


def main(path: str) -> int:
    """Execute the notebook at `path`; the exit status."""
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=CELL_SECONDS_MAX, config=LOCAL)
    status = 0
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError:
        status = 1
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    json.dump([output for cell in cells for output in cell.outputs], sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
