"""Choices: one question a file; they read entities and return values."""
