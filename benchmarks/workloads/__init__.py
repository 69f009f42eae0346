"""What is measured.  Each module holds a family of workloads, written once for every side."""
