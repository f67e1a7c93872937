"""A whole CodeHub of the game's own, and what it stands on."""
