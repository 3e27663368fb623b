"""Every state of small worlds made of Seapost's own rules, explored breadth first (`python -m tests.model`).

A world is a pure description: a start, the steps that are possible in a state, and what must hold. Steps are atomic
where the kernel's statement or transaction is, and split where it is not, so that a crash, a lost answer or somebody
else's step can fall between any two. `explore` walks all of them and gives back the shortest way to a broken rule.

Each rule has a broken twin: the same world with one protection taken out, in which the exploration must find harm.
"""
