"""A fresh client for each scene."""

import pytest

from tests.scenes.client.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
