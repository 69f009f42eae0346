"""A plugin of pytest: how each test ended, one line of JSON each, written as it ends.

Loaded by `-p recording` with RECORD_INTO=FILE in the environment, in whichever interpreter runs the
tests; what a run that dies had recorded is still there.
"""

import json
import os
from pathlib import Path

_SHOWN = 300


class Recorder:
    """Adds up the phases of a test: set-up, call, end."""

    def __init__(self, path):
        self._path = Path(path)
        self._seconds = {}
        self._worst = {}

    def pytest_runtest_logreport(self, report):
        """Called for each phase."""
        name = name_of(report)
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        outcome = outcome_of(report)
        if outcome != "passed" and self._worst.get(name, ("passed",))[0] != "failed":
            self._worst[name] = (outcome, reason_of(report))
        if report.when == "teardown":
            outcome, reason = self._worst.pop(name, ("passed", ""))
            self._say(name, outcome, self._seconds.pop(name), reason)

    def pytest_collectreport(self, report):
        """A file that can't be imported is one failure."""
        if report.failed:
            self._say(report.nodeid, "failed", 0.0, reason_of(report))

    def _say(self, name, outcome, seconds, reason):
        line = {"name": name, "outcome": outcome, "seconds": seconds, "reason": reason}
        with self._path.open("a", encoding="utf-8") as record:
            record.write(json.dumps(line) + "\n")


def name_of(report):
    """With the file's name, which pytest leaves out for files outside its folder."""
    file, separator, test = report.nodeid.partition("::")
    return f"{file or Path(report.location[0]).name}{separator}{test}"


def outcome_of(report):
    """`passed`, `failed`, `skipped`; `expected` if it failed as its author knew it would."""
    if hasattr(report, "wasxfail"):
        return "expected" if report.skipped else "lucky"
    return "passed" if report.outcome == "rerun" else report.outcome


def reason_of(report):
    """The last line of what went wrong, or why it was skipped."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:_SHOWN]
    crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", None)
    lines = str(crash or report.longrepr or "").strip().splitlines()
    told = [line for line in lines if line.startswith("E ")] or lines or [""]
    return (lines[0] if crash and lines else told[-1])[:_SHOWN]


def pytest_configure(config):
    """Begin."""
    path = os.environ.get("RECORD_INTO")
    if path:
        config.pluginmanager.register(Recorder(path), "recorder")
