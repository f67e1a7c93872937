"""The egress gateway: the only way out of a workspace."""
