"""A database and homes as M1 leaves them."""
