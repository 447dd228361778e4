"""The security headers of every response."""

from collections.abc import Iterable

RawHeaders = list[tuple[bytes, bytes]]


def content_policy(nonce: str, scripts: Iterable[str] = ()) -> str:
    """Return the Content-Security-Policy: scripts with this nonce or exactly at one of these addresses."""
    allowed = " ".join([f"'nonce-{nonce}'", *scripts])
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"
    )


def secured(given: Iterable[tuple[bytes, bytes]], nonce: str, scripts: Iterable[str] = ()) -> RawHeaders:
    """Return the response headers `given` with ours. What is not said to be cacheable is not stored."""
    ours = {
        b"content-security-policy": content_policy(nonce, scripts).encode(),
        b"x-content-type-options": b"nosniff",
        b"x-frame-options": b"DENY",
        # Not "no-referrer": with it a browser sends a plain form with the origin "null", which we refuse.
        b"referrer-policy": b"same-origin",
        b"cross-origin-opener-policy": b"same-origin",
        b"cross-origin-resource-policy": b"same-origin",
        b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    }
    kept = [(name, value) for name, value in given if name.lower() not in ours]
    if not any(name.lower() == b"cache-control" for name, _ in kept):
        kept.append((b"cache-control", b"no-store"))
    return [*kept, *ours.items()]
