"""What clients and tasks agree on among themselves, by name: small machines beside the tasks."""
