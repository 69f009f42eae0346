"""A fresh worker for each scene."""

import pytest

from tests.scenes.worker.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
