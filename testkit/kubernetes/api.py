"""A plain client of the test cluster's API server, for what tests must not do through our own adapters."""

import base64
import json
import ssl
from pathlib import Path
from typing import Any, Self

import httpx

TIMEOUT_SECONDS = 30
MERGE_PATCH = "application/merge-patch+json"
NOT_FOUND = 404


class Api:
    """Requests with the credentials of one kubeconfig; paths are those of the API server."""

    def __init__(self, kubeconfig: Path) -> None:
        configuration = json.loads(kubeconfig.read_text())
        cluster = configuration["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        token = configuration["users"][0]["user"]["token"]
        self._client = httpx.Client(
            base_url=cluster["server"],
            headers={"Authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cadata=authority),
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def answers(self) -> bool:
        """Whether the API server is ready."""
        try:
            return self._client.get("/readyz").is_success
        except httpx.TransportError:
            return False

    def get(self, path: str) -> dict[str, Any]:
        return _content(self._client.get(path))

    def find(self, path: str) -> dict[str, Any] | None:
        """Return an object, or None if it does not exist."""
        response = self._client.get(path)
        return None if response.status_code == NOT_FOUND else _content(response)

    def list(self, path: str) -> list[dict[str, Any]]:
        return list(self.get(path)["items"])

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _content(self.post(path, body))

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """Create an object and return the response whatever its status is."""
        return self._client.post(path, json=body)

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": MERGE_PATCH}
        return _content(self._client.patch(path, content=json.dumps(body), headers=headers))

    def text(self, path: str) -> str:
        return self._client.get(path).raise_for_status().text

    def delete(self, path: str, **parameters: int | str) -> None:
        """Request the removal of an object or of all in a list; succeed if it does not exist."""
        response = self._client.delete(path, params=parameters)
        if response.status_code != NOT_FOUND:
            response.raise_for_status()


def is_true(thing: dict[str, Any], condition: str) -> bool:
    """Whether a condition in the status of an object is True."""
    conditions = thing.get("status", {}).get("conditions", [])
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def _content(response: httpx.Response) -> dict[str, Any]:
    if response.is_error:
        message = f"{response.request.method} {response.url}: {response.text}"
        raise httpx.HTTPStatusError(message, request=response.request, response=response)
    return dict(response.json())
