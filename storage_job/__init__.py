"""A stand-alone program that archives and restores one home; it imports nothing from the control plane."""
