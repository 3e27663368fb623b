"""The commands of `oceanway`, one module each."""
