"""Seeing what it does: views with the names that upstream's users know."""
