"""Tune Python's garbage collector for a process with many modules and many short-lived objects."""

import gc

# A page of a list or a workflow sandbox creates thousands of objects, nearly all of them short-lived.
THRESHOLDS = (20_000, 20, 20)


def tune_gc() -> None:
    """Exclude everything loaded so far from collections; call it once, after startup."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
