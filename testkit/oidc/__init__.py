"""A real OpenID provider as a process, which can forge tokens on demand."""
