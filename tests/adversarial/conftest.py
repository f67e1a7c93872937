"""Fixtures of the adversarial tests: real S3, and a volume with old content."""

from tests.fixtures_s3 import bucket, s3_server
from tests.fixtures_volume import volume

__all__ = ["bucket", "s3_server", "volume"]
