"""Ports made real, one package per technology; they do not import each other."""
