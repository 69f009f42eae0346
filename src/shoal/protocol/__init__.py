"""What is said: messages, and their bytes, from frames down to the first challenge.  Pure."""
