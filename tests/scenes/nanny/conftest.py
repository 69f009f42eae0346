"""A fresh nanny for each scene."""

import pytest

from tests.scenes.nanny.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
