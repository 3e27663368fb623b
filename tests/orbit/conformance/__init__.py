"""The conformance suite of `orbit.events.v1`: exchanges that any server must pass, given its address and tokens.

`python -m tests.orbit.conformance --url http://127.0.0.1:8080 --queue q`, with the tokens in the environment.
"""
