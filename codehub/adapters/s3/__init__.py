"""Archives in an S3 bucket."""
