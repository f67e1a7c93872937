"""The CodeHub that a game plays on."""
