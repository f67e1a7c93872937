"""The users of a game, and what they remember of their files."""
