"""Authentication, authorization and rate limits: checked before any route runs."""
