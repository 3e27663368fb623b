"""The server: one ASGI application for HTTP and WebSocket."""
