"""What must hold, during a game and after it."""
