"""The isolated archive and restore program; it imports nothing of the control plane."""
