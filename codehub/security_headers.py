"""The security headers of every response that CodeHub makes itself; the API and the proxy share them."""

SECURITY_HEADERS = {
    # If a browser shows a response that is not a page, it loads nothing and cannot be framed.
    "Content-Security-Policy": (
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Our pages must send a Referer: cookies do not authenticate requests that hide it (api/security/csrf.py).
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HSTS = "max-age=31536000"


def security_headers(*, https: bool) -> dict[str, str]:
    return SECURITY_HEADERS | ({"Strict-Transport-Security": HSTS} if https else {})
