"""The rules of the house that no linter knows, one file for each kind; see `tests/tidy.py`."""
