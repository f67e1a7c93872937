"""The front door: an IDE proxy at protocol level."""
