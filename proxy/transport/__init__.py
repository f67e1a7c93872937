"""HTTP/1.1 at protocol level: moves bytes, and asks a router where they go."""
