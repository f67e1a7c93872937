"""Cost of sweeps with many parked workspaces."""
