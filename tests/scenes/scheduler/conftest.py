"""The stage for every scene of this folder."""

import pytest

from tests.scenes.scheduler.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """A scheduler's machine, and nobody connected yet."""
    return Scene()
