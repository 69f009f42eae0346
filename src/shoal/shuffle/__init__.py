"""Exchanges of all with all: shards stay where they are made, and are fetched from there."""
