"""`oceanway prove`: whether the settlement inputs of metering have arrived in billing, each owner for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import ConfigOption, JsonOption
from oceanway.installation.layout import Kind, process_of
from oceanway.installation.settings import Settings, load_settings
from seapost.cli.output import Output, Table
from seapost.database.pool import RoleTimeouts, configure_session, part_dsn

if TYPE_CHECKING:
    from oceanway.billing.store_chain import BillingChain
    from oceanway.metering.store_chain import MeteringChain

PROVING: Final = RoleTimeouts(60.0, 5.0, 60.0)
"""A proof reads every delivery and receipt once."""


def prove(config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Prove that the settlement chain is complete: metering's deliveries, and billing's receipts, fences and works.

    Each owner speaks for itself, of its own moment; neither database is joined with the other (ORD-07, ORD-08). The
    exit code tells whether both are complete.
    """
    from oceanway.billing.store_chain import settlement_chain as of_billing  # noqa: PLC0415 - for this command alone
    from oceanway.metering.store_chain import settlement_chain as of_metering  # noqa: PLC0415 - as above

    settings = load_settings(config)
    found: dict[str, MeteringChain | BillingChain] = {
        "metering": _looked(settings, "metering", of_metering),
        "billing": _looked(settings, "billing", of_billing),
    }
    document = {owner: {**proof._asdict(), "complete": proof.is_complete} for owner, proof in found.items()}
    rows = [(owner, name, count) for owner, proof in found.items() for name, count in _counts(proof)]
    Output(as_json=as_json).emit(document, Table(("owner", "what", "number"), rows))
    return ExitCode.DONE if all(proof.is_complete for proof in found.values()) else ExitCode.CHECK_FAILED


def _looked(settings: Settings, owner: str, look: Any) -> Any:  # noqa: ANN401 - the caller knows both types
    import psycopg  # noqa: PLC0415 - for this command alone

    dsn = part_dsn(settings.process_dsn(process_of(Kind.AUDIT, owner)), "prove", program="oceanway")
    with psycopg.connect(dsn, autocommit=True) as connection:
        configure_session(connection, PROVING)
        return look(connection)


def _counts(proof: MeteringChain | BillingChain) -> list[tuple[str, object]]:
    named = [(name.replace("_", " "), count) for name, count in proof._asdict().items()]
    return [*named, ("complete", "yes" if proof.is_complete else "no")]
