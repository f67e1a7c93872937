"""`codehub up`: a whole CodeHub on this machine."""
