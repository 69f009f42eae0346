"""What plugins that send files leave behind as they are taken away."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from shoal.observe.plugins.sending import UploadFile
from shoal.observe.status import Status


@pytest.mark.parametrize(
    ("status", "is_kept"),
    [(Status.running, True), (Status.paused, True), (Status.closing, False)],
)
def test_a_worker_that_stays_goes_on_to_find_modules_that_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Status, is_kept: bool
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "sent.py").write_text("x = 1\n")
    worker = SimpleNamespace(status=status, local_directory=str(tmp_path))
    UploadFile(str(tmp_path / "sent.py")).teardown(worker)
    assert (str(tmp_path) in sys.path) is is_kept
