"""The egress gateway: workspaces reach the outside only through it."""
