"""Append and receive through the database library that the application has already: one module for each.

Importing `seapost` imports none of them, and each needs its library: `seapost[sqlalchemy]`, `seapost[asyncpg]`,
`seapost[django]`.
"""
