"""Check a tar stream while it passes, in constant memory."""
