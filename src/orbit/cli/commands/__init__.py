"""One module for each group of commands of the `orbit` program."""
