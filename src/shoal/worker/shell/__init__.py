"""What a worker does: threads, transfers, and the service that ties them to its machine."""
