"""Archives in any S3."""
