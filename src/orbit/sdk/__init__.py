"""The client: management, event connection, automatic consumer and worker, asynchronous and synchronous."""
