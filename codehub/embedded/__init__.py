"""The one-machine stack: PostgreSQL, Redis, S3 and Temporal as child processes."""
