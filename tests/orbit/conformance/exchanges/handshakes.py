"""Handshakes: who is let in, and what the others are told (WSS-02, WSS-03)."""

from __future__ import annotations

from tests.orbit.conformance.client import event_client, refused
from tests.orbit.conformance.registry import exchange
from tests.orbit.conformance.world import World


@exchange("WSS-01", "WSS-02")
async def the_subprotocol_is_agreed(world: World) -> None:
    """The server answers with the subprotocol that it speaks."""
    async with world.connect() as client:
        assert client.connection.subprotocol == "orbit.events.v1"


@exchange("WSS-16")
async def compression_is_never_agreed(world: World) -> None:
    """The client offers permessage-deflate; frames carry secrets, so the server does not take it."""
    async with world.connect() as client:
        assert client.connection.protocol.extensions == []


@exchange("WSS-01", "WSS-02")
async def the_subprotocol_is_found_among_others(world: World) -> None:
    """A client may speak more than one."""
    async with event_client(world.endpoint, world.token, subprotocols=["other.v1", "orbit.events.v1"]) as client:
        assert client.connection.subprotocol == "orbit.events.v1"


@exchange("WSS-03", "T-N22")
async def a_handshake_without_subprotocol_is_refused(world: World) -> None:
    """400 with a problem."""
    status, problem, headers = await refused(world.endpoint, world.token, subprotocols=None)
    assert (status, problem["code"]) == (400, "SUBPROTOCOL_REQUIRED")
    assert headers["content-type"] == "application/problem+json"
    assert problem["request_id"] == headers["orbit-request-id"]


@exchange("WSS-03", "T-N22")
async def a_handshake_with_another_subprotocol_is_refused(world: World) -> None:
    """400, also for a version that does not exist."""
    status, problem, _ = await refused(world.endpoint, world.token, subprotocols=["orbit.events.v2"])
    assert (status, problem["code"]) == (400, "SUBPROTOCOL_REQUIRED")


@exchange("WSS-03", "T-N22", "AUT-14")
async def a_handshake_without_token_is_refused(world: World) -> None:
    """401, with the scheme that is expected."""
    status, problem, headers = await refused(world.endpoint, None)
    assert (status, problem["code"]) == (401, "UNAUTHENTICATED")
    assert headers["www-authenticate"] == "Bearer"


@exchange("WSS-03", "AUT-14")
async def a_token_in_the_query_string_is_not_accepted(world: World) -> None:
    """A good token in the address counts for nothing."""
    status, problem, _ = await refused(f"{world.endpoint}?token={world.token}&access_token={world.token}", None)
    assert (status, problem["code"]) == (401, "UNAUTHENTICATED")
    assert world.token not in str(problem)


@exchange("WSS-03")
async def an_unknown_token_is_refused(world: World) -> None:
    """401 for a token of the right form that nobody issued."""
    status, problem, _ = await refused(world.endpoint, "orbit_" + "A" * 43)
    assert (status, problem["code"]) == (401, "UNAUTHENTICATED")


@exchange("WSS-03")
async def a_token_of_another_form_is_refused(world: World) -> None:
    """401 for what cannot be a token."""
    for token in ("", "x", world.token[:-1], world.token + "x"):
        status, problem, _ = await refused(world.endpoint, token)
        assert (status, problem["code"]) == (401, "UNAUTHENTICATED")


@exchange("WSS-03", "AUT-10")
async def a_credential_without_the_action_is_refused(world: World) -> None:
    """403: management and reading do not let anybody consume."""
    status, problem, _ = await refused(world.endpoint, world.idle_token)
    assert (status, problem["code"]) == (403, "ACTION_NOT_ALLOWED")


@exchange("WSS-02", "F87")
async def a_page_of_another_origin_is_refused(world: World) -> None:
    """A browser sends `Origin`; a page of somebody else is not let in, even with a good token."""
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example"):
        status, problem, _ = await refused(world.endpoint, world.token, Origin=origin)
        assert (status, problem["code"]) == (403, "ACTION_NOT_ALLOWED")


@exchange("WSS-02", "F87")
async def a_page_of_the_server_itself_is_let_in(world: World) -> None:
    """The same host and port is no foreign origin."""
    async with world.connect(Origin=world.url):
        pass


@exchange("LSE-11", "WSS-05", "T-N09")
async def a_header_cannot_name_the_connection_id(world: World) -> None:
    """The id is the server's, whatever headers say."""
    subscription_id = await world.any_subscription()
    async with world.connect(X_Connection_Id="conn_mine", Connection_Id="conn_mine") as client:
        assert (await client.greet(subscription_id))["connection_id"] != "conn_mine"
