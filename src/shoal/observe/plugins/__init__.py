"""Plugins that come with the house: installing, sending files, environments, forwarding."""
