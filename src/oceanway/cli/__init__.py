"""The command line: the only place where everything meets."""
