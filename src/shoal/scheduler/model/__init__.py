"""Nouns: tasks, workers, clients, and the indexes over them."""
