"""Run oidc-provider-mock (authlib's server) with PKCE, and with lies on demand: `python -m testkit.oidc PORT`

`PUT /lies` replaces the current lies: `claims` overrides claims of ID tokens (null removes one), `algorithm`
and `key` say how they are signed, `rotate` makes a new key first, `failing` makes every request fail.
"""

import base64
import hmac
import json
import os
import sys
import time
from typing import Any

import flask
import oidc_provider_mock
from authlib.oauth2.rfc7636 import CodeChallenge
from joserfc import jwk, jws
from werkzeug.serving import make_server

Json = dict[str, Any]
PORT = int(sys.argv[1])
app: flask.Flask = oidc_provider_mock.app(require_client_registration=True)
lies: Json = {}
challenges: dict[str, str] = {}


class RequiredChallenge(CodeChallenge):  # type: ignore[misc]
    """Authlib's PKCE. The provider's codes have no field for the challenge, so the nonce finds it."""

    def validate_code_challenge(self, grant: Any, redirect_uri: Any) -> None:  # noqa: ANN401
        super().validate_code_challenge(grant, redirect_uri)
        data = grant.request.payload.data
        challenges[data["nonce"]] = data["code_challenge"]

    def get_authorization_code_challenge(self, authorization_code: Any) -> str:  # noqa: ANN401
        return challenges[authorization_code.nonce]

    def get_authorization_code_challenge_method(self, authorization_code: Any) -> str:  # noqa: ANN401
        del authorization_code
        return "S256"


@app.before_request
def add_challenge() -> None:
    for _, extensions in flask.g._authlib_authorization_server._authorization_grants:
        if not any(isinstance(each, RequiredChallenge) for each in extensions):
            extensions.append(RequiredChallenge(required=True))


@app.before_request
def fail() -> flask.Response | None:
    failing = lies.get("failing") and flask.request.path != "/lies"
    return flask.Response("out of order", 500) if failing else None


@app.put("/lies")
def set_lies() -> tuple[str, int]:
    lies.clear()
    lies.update(flask.request.get_json())
    if lies.get("rotate"):
        storage = flask.g.oidc_provider_mock_storage
        storage.jwk = type(storage.jwk).generate_key(is_private=True)
    return "", 204


@app.after_request
def forge(response: flask.Response) -> flask.Response:
    document = response.get_json(silent=True) if flask.request.path == "/oauth2/token" else None
    if document and "id_token" in document:
        document["id_token"] = _forge(document["id_token"])
        response.set_data(json.dumps(document))
    return response


def _forge(token: str) -> str:
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    claims |= {"auth_time": int(time.time())} | lies.get("claims", {})
    content = json.dumps({name: value for name, value in claims.items() if value is not None}).encode()
    own = jwk.RSAKey.import_key(flask.g.oidc_provider_mock_storage.jwk.as_dict(is_private=True))
    algorithm = lies.get("algorithm", "RS256")
    header = {"alg": algorithm, "kid": own.thumbprint()}
    if algorithm == "HS256":
        return _sign_with_secret(header, content, own.as_pem(private=False))
    key = jwk.RSAKey.generate_key() if lies.get("key") == "other" else own
    return jws.serialize_compact(header, content, key, algorithms=[algorithm])


def _sign_with_secret(header: Json, content: bytes, secret: bytes) -> str:
    """Sign with the public key as if it were a shared secret, which libraries refuse to do."""
    parts = [_encode(json.dumps(header).encode()), _encode(content)]
    parts.append(_encode(hmac.digest(secret, ".".join(parts).encode(), "sha256")))
    return ".".join(parts)


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


if __name__ == "__main__":
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    make_server("127.0.0.1", PORT, app, threaded=True).serve_forever()
