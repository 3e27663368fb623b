"""`seapost event`: one stored fact and how far it has come."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, cast

import typer

from seapost.cli.databases import looking
from seapost.cli.exit_codes import ExitCode
from seapost.cli.options import ConfigOption, DsnOption, EventArgument, JsonOption
from seapost.cli.output import Fields, Output, Table
from seapost.cli.settings import load_settings
from seapost.model.errors import UnknownEvent
from seapost.store import status
from seapost.store.status import DeliveryRecord, EventRecord

MASK = "***"

app = typer.Typer(help="Look at a stored event.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def show(
    event_id: EventArgument,
    payload: Annotated[
        bool, typer.Option("--payload", help="Also show the payload, with the fields of display.masked_fields hidden.")
    ] = False,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show an event, its frozen delivery set and each of its deliveries."""
    settings = load_settings(file=config, flags={("database", "dsn"): dsn})

    async def look() -> tuple[EventRecord | None, list[DeliveryRecord]]:
        async with looking(settings.database) as connection:
            return (
                await status.event(connection, event_id=event_id),
                await status.deliveries(connection, event_id=event_id),
            )

    event, deliveries = asyncio.run(look())
    if event is None:
        raise UnknownEvent(f"There is no event {event_id} in this database.")
    document = _document(event)
    if payload:
        document["payload"] = masked(json.loads(event.event_envelope)["payload"], settings.display.masked_fields)
    blocks = [
        Fields(_fields(event)),
        "",
        Table(
            ("destination", "status", "attempts", "available", "delivered", "last error"),
            [
                (
                    one.destination,
                    one.status,
                    one.attempt_count,
                    one.available_at,
                    one.delivered_at,
                    one.last_error_code,
                )
                for one in deliveries
            ],
        ),
    ]
    if payload:
        blocks += ["", json.dumps(document["payload"], indent=2, ensure_ascii=True)]
    document["deliveries"] = [
        {
            "destination": one.destination,
            "status": one.status,
            "attemptCount": one.attempt_count,
            "availableAt": one.available_at,
            "deliveredAt": one.delivered_at,
            "lastErrorCode": one.last_error_code,
            "lastErrorRef": one.last_error_ref,
        }
        for one in deliveries
    ]
    Output(as_json=as_json).emit(document, *blocks)
    return ExitCode.DONE


def masked(value: object, names: tuple[str, ...]) -> object:
    """The payload with the values of these fields hidden, in any case and at any depth (F88)."""
    hidden = {name.lower() for name in names}

    def walk(node: object) -> object:
        if isinstance(node, dict):
            fields = cast("dict[str, object]", node)
            return {name: MASK if name.lower() in hidden else walk(item) for name, item in fields.items()}
        return [walk(item) for item in cast("list[object]", node)] if isinstance(node, list) else node

    return walk(value)


def _document(event: EventRecord) -> dict[str, object]:
    return {
        "eventId": event.event_id,
        "eventType": event.event_type,
        "eventSchemaVersion": event.schema_version,
        "producer": event.producer,
        "aggregate": {"kind": event.aggregate_kind, "id": event.aggregate_id, "revision": event.aggregate_revision},
        "tenant": {
            "tenantKind": event.tenant_kind,
            "tenantId": event.tenant_id,
            "workspaceId": event.workspace_id,
            "projectId": event.project_id,
        },
        "correlation": {
            "correlationId": event.correlation_id,
            "causationId": event.causation_id,
            "operationId": event.operation_id,
            "traceparent": event.traceparent,
        },
        "occurredAt": event.occurred_at,
        "createdAt": event.created_at,
        "publishedAt": event.published_at,
        "deliverySetVersion": event.delivery_set_version,
        "deliverySetDefinitionDigest": event.delivery_set_definition_digest,
        "mandatoryDeliveries": event.mandatory_count,
        "eventEnvelopeDigestAlgorithmVersion": event.event_envelope_digest_algorithm_version,
        "eventEnvelopeSha256": event.event_envelope_sha256,
        "eventEnvelopeBytes": len(event.event_envelope),
    }


def _fields(event: EventRecord) -> dict[str, object]:
    return {
        "event": event.event_id,
        "type": event.event_type,
        "schema version": event.schema_version,
        "producer": event.producer,
        "aggregate": f"{event.aggregate_kind} {event.aggregate_id}, revision {event.aggregate_revision}",
        "tenant": f"{event.tenant_kind} {event.tenant_id}, workspace {event.workspace_id}"
        + (f", project {event.project_id}" if event.project_id else ""),
        "correlation": event.correlation_id,
        "causation": event.causation_id,
        "operation": event.operation_id,
        "trace": event.traceparent,
        "occurred": event.occurred_at,
        "stored": event.created_at,
        "published": event.published_at,
        "delivery set": f"{event.delivery_set_version} ({event.delivery_set_definition_digest})",
        "envelope": f"{len(event.event_envelope)} bytes, sha256 {event.event_envelope_sha256}",
    }
