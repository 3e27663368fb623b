"""A working day, with every worker killed now and then."""
