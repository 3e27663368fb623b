"""The ASGI application: receiver endpoint, health and metrics."""
