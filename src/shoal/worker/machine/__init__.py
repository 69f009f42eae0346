"""What a worker decides: messages and events in, effects out.  Pure."""
