"""The agent inside an instance: it runs the IDE and its services, and exits with the IDE."""
