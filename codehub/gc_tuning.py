"""Python's garbage collector in a process that has loaded much and makes many short-lived objects."""

import gc

# A page of a list or a workflow's sandbox makes thousands of objects, nearly all of them gone right after.
THRESHOLDS = (20_000, 20, 20)


def tune_gc() -> None:
    """Call once everything is loaded: it stays, so nobody has to look through all of it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
