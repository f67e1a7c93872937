"""The egress gateway beside a direct connection."""
