"""Redis: the activity buffer, the event bus and the progress board."""
