"""The report of a game: HTML page, terminal text and JSON."""
