"""Work that is hard on memory, the same on both sides, watched from outside and from inside."""
