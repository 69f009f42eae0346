"""Where values are kept: knows tasks and sizes, and no role."""
