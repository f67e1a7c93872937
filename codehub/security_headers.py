"""The security headers of CodeHub's own responses, for the API and the proxy."""

SECURITY_HEADERS = {
    # A response that is not a page loads nothing and cannot be framed.
    "Content-Security-Policy": (
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Our pages must send a Referer: api/security/csrf.py rejects cookies on requests without it.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HSTS = "max-age=31536000"


def security_headers(*, https: bool) -> dict[str, str]:
    return SECURITY_HEADERS | ({"Strict-Transport-Security": HSTS} if https else {})
