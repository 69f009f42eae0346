"""Deeds: sockets, timers, and calls that need them."""
