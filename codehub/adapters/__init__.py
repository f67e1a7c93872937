"""Implementations of the ports, one package for each technology; they do not import each other."""
