"""What goes over the wire: the public contract, one file per subject."""
