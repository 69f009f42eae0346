"""Processes of services: started, watched, restarted, and never left behind."""
