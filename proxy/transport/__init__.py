"""An HTTP/1.1 and WebSocket proxy that asks a router where each request goes."""
