"""What each setting means, as the text below its field says it; for people who look.

The texts are read from the source, so that nobody else pays for them.
"""

import ast
import inspect
from typing import Final

from shoal.config.base import Settings

_ALIKE: Final = {
    "preload": "Modules, files or addresses of scripts that are run as the process starts.",
    "preload_argv": "Arguments for those scripts.",
}
"""Fields that mean the same in every section."""


def meanings(section: type[Settings]) -> dict[str, str]:
    """Field → what it means, in one paragraph.

    Cost: reads and parses the source of the section.
    """
    (tree,) = ast.parse(inspect.getsource(section)).body
    assert isinstance(tree, ast.ClassDef)
    found = {name: _ALIKE[name] for name in section.__struct_fields__ if name in _ALIKE}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = _text_of(following)
            if text:
                found[statement.target.id] = " ".join(text.split())
    return found


def _text_of(statement: ast.stmt) -> str:
    """The text that stands by itself, if that is what it is."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return ""
    return str(statement.value.value)
