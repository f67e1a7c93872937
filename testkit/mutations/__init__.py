"""Deliberate breaks of the rules that protect files; somebody has to notice each."""
