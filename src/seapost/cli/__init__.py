"""The command line: the only room that knows every other one and puts them together."""
