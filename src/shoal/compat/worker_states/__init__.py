"""`distributed.worker_state_machine`: the worker's machine by its old names.

stimuli (what happened), instructions (what to do), state (`WorkerState`: from one to the other by
way of `shoal.worker.machine`), tasks and shown (what can be looked at), threads (who runs what
next), errors (what it does not decide, and why).  What the old machine decided, and this one leaves
to others, is refused.
"""
