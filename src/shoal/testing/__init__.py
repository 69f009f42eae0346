"""For tests of programs that use shoal: clusters that start in milliseconds, and their fixtures."""
