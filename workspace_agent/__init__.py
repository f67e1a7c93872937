"""The program inside an instance: it starts the IDE, serves what the IDE needs, and ends with it."""
