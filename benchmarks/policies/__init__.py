"""How good the scheduler's choices are: its real machine in virtual time, against its rivals.

`python -m benchmarks.policies`; `docs/decisions/0030-*` says what is modelled and what is not.
"""
