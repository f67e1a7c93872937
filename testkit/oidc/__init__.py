"""A real OpenID provider as a process, which can be told to lie."""
