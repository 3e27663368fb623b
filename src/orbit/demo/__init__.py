"""`orbit demo`: real flights as tasks, three subscribers under a chaos loop, and the evidence."""
