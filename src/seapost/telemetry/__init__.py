"""Names of log events and metrics in one catalog, and the logging, metrics and tracing that use them."""
