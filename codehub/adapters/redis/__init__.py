"""Redis: the buffer for activity and the bus for events."""
