"""Pure decisions: standard library only, no clock, ids, environment or I/O."""
