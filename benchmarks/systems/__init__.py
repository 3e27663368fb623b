"""What is measured beside what: one file per system, all with the protocol of `system.py`.

A file `rival_…` imports that rival and nothing of Seapost; it runs in an environment of its own.
"""
