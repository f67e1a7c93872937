"""The `codehub` command."""
