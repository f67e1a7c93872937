"""What a caller may ask for: one short transaction each, wake afterwards."""
