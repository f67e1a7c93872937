"""The storage job's compression compared with the zstd program."""
