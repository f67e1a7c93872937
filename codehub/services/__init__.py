"""The requests that callers can make: each is one short transaction; callers wake the workflow afterwards."""
