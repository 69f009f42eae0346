"""What whoever looks at the scheduler's log should know: said once, and seldom again.

The machine logs nothing: its shell takes what is to be logged after each step.
"""

from typing import Final

from shoal.scheduler.machine.core import Core

AGAIN_SECONDS: Final = 300.0
"""How long the same is not said again."""

WARNINGS_MAX: Final = 20
"""Different ones in that time; more of them nobody would read."""


def warn(core: Core, about: str, text: str) -> bool:
    """Have `text` logged as a warning, unless one about the same was, or too many; whether it is.

    Args:
        about: what the warning is about; others may differ in their numbers.
    """
    warned = core.state.warned
    for before, at in list(warned.items()):
        if at + AGAIN_SECONDS > core.now:
            break
        del warned[before]
    if about in warned or len(warned) >= WARNINGS_MAX:
        return False
    warned[about] = core.now
    core.warnings.append(text)
    return True
