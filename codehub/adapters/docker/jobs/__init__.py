"""Storage jobs as throw-away containers."""
