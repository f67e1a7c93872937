"""What a game breaks, and how."""
