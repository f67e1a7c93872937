"""Pure decisions: only the standard library; no clock, random ids, environment or I/O."""
