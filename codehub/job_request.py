"""What a storage job is told: one JSON document on stdin, so that no secret is on a command line."""

import json
from dataclasses import asdict

from codehub.ports import ArchiveStore, ExpectedArchive


def job_request(store: ArchiveStore, key: str, data_dir: str, expected: ExpectedArchive) -> bytes:
    access = asdict(store)
    bucket = access.pop("bucket")
    recorded = {"expected_size": expected.size_bytes, "expected_sha256": expected.sha256}
    known = {name: value for name, value in recorded.items() if value is not None}
    place = {"archive_url": f"s3://{bucket}/{key}", "data_dir": data_dir}
    return json.dumps(access | place | known).encode()
