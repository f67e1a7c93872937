"""Game day: break a CodeHub of its own at random, and prove that nothing is ever lost."""
