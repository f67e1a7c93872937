"""The servers that `codehub up` runs: PostgreSQL, Redis, S3 and Temporal."""
