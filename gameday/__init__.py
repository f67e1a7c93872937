"""Game day: break a CodeHub at random and check that nothing is lost."""
