"""HTTP: routes, strict bodies, problems (RFC 9457)."""
