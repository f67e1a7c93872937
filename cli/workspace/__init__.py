"""`codehub ws`: create, use and delete workspaces."""
