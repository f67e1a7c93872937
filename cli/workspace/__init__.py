"""`codehub workspace`: the commands that create, use and remove workspaces."""
