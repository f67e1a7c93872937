"""The report of a game: page, terminal, JSON."""
