"""The simulator: real machines, virtual time, a world of faults that one seed decides."""
