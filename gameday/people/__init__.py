"""The simulated users of a game and the journal of their files."""
