"""A process that starts loads what all of its kind need, and not what few of them do."""

import subprocess
import sys

import pytest

RARE = {
    "client": (
        "import shoal; shoal.Client",
        {
            "shoal.client.actors",
            "shoal.client.completing",
            "shoal.client.coordination",
            "shoal.client.progress",
            "shoal.compat",
            "shoal.deploy",
            "shoal.observe.dumps",
            "shoal.observe.plugins",
            "shoal.observe.remote",
            "shoal.protocol.compression",
            "shoal.protocol.families",
            "shoal.scheduler",
            "shoal.storage",
            "shoal.testing",
            "shoal.web",
            "shoal.worker",
        },
    ),
    "worker": (
        "import shoal.deploy.child, shoal.worker.shell.service",
        {
            "shoal.client.client",
            "shoal.compat",
            "shoal.observe.groups",
            "shoal.observe.memory",
            "shoal.observe.plugins",
            "shoal.observe.views",
            "shoal.protocol.families",
            "shoal.scheduler",
            "shoal.storage.uploads",
            "shoal.web",
            "shoal.worker.shell.actors",
            "shoal.worker.shell.executors",
            "shoal.worker.shell.watching",
        },
    ),
    "scheduler": (
        "import shoal.deploy.child, shoal.scheduler.shell.service",
        {
            "shoal.client.client",
            "shoal.compat",
            "shoal.observe.dumps",
            "shoal.observe.groups",
            "shoal.observe.memory",
            "shoal.observe.plugins",
            "shoal.protocol.families",
            "shoal.scheduler.shell.picture",
            "shoal.web.server",
            "shoal.worker",
        },
    ),
}
"""Process -> what it imports as it starts, and what it must not have then."""


@pytest.mark.parametrize("process", RARE)
def test_what_is_rare_is_not_loaded_before_it_is_used(process: str) -> None:
    code, rare = RARE[process]
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    ).stdout.split()
    assert "shoal" in printed
    assert sorted(rare.intersection(printed)) == []


def test_parts_of_shoal_can_be_imported_from_it_without_old_names() -> None:
    code = """
import sys
from shoal import config
print(config.__name__, "shoal.compat" in sys.modules)
"""
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    ).stdout
    assert printed.split() == ["shoal.config", "False"]
