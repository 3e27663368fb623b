"""All exchanges; importing this package registers them."""

from tests.orbit.conformance.exchanges import acknowledging, ending, greeting, handshakes, pulling, refusing

__all__ = ["acknowledging", "ending", "greeting", "handshakes", "pulling", "refusing"]
