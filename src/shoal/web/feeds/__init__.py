"""From the scheduler's state to columns; pure, and nothing but a look."""
