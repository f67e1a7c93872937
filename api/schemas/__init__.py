"""Request and response schemas: the public contract."""
