"""WebSocket: sessions of the protocol `orbit.events.v1`."""
