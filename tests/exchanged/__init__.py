"""Random exchanges of tables and arrays, held against pandas and numpy.

`python -m tests.exchanged FIRST STOP` runs the cases of these numbers, a tenth of them on a
cluster.
"""
