"""`codehub up`, `down` and `status`: a complete CodeHub on this machine."""
