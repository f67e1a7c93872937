"""Archive compression: speed and size by level."""
