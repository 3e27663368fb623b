"""All settings of a process, as one typed and immutable object that is validated once (REF-13, CLM-11).

A setting comes from a flag, an environment variable `SEAPOST_…` or a TOML file, in this order. Defaults stand in the
classes that own the setting and nowhere else; the reference page of the documentation is made from them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from seapost.cli.layers import MANY, Given, Layer, Place, SettingField, environment_layer, fields_of, file_layer, merged
from seapost.database.pool import RoleTimeouts
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings
from seapost.model.errors import InvalidSetting

DEFAULT_FILE: Final = Path("seapost.toml")
FILE_VARIABLE: Final = "SEAPOST_CONFIG"

Seconds = Annotated[float, Field(ge=0, le=86_400)]
Port = Annotated[int, Field(ge=0, le=65_535)]


class _Section(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False
    )


class DatabaseSettings(_Section):
    """One database and how to talk to it."""

    dsn: SecretStr | None = Field(
        default=None,
        description="Connection string: a `postgresql://` URL or `name=value` pairs; it may hold a password.",
    )
    direct_dsn: SecretStr | None = Field(
        default=None,
        description="Connection string of the server itself where `dsn` leads through a pooler: to listen, to migrate.",
    )
    embedded: Path | None = Field(
        default=None,
        description="Data directory of an embedded server that is started when needed; takes the place of `dsn`.",
    )
    name: str = Field(
        default="seapost", min_length=1, max_length=63, description="Database inside the embedded server."
    )
    role: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        description="Role that every session takes on, such as `seapost_operator`.",
    )
    pool_size: int | None = Field(
        default=None,
        ge=1,
        le=1_000,
        description="Most connections of the process's pool; absent, what its work can use.",
    )
    behind_pooler: bool = Field(
        default=False,
        description="A transaction-mode pooler stands between: nothing is prepared, no session state is kept.",
    )
    statement_timeout_seconds: Seconds = Field(default=30.0, description="Longest statement; 0 switches the limit off.")
    lock_timeout_seconds: Seconds = Field(default=5.0, description="Longest wait for a lock; 0 switches the limit off.")
    idle_in_transaction_timeout_seconds: Seconds = Field(
        default=30.0, description="Longest idle transaction; 0 switches the limit off."
    )
    read_timeout_seconds: Seconds = Field(
        default=10.0, description="Longest statement of the commands that only look, such as `status`."
    )

    @property
    def timeouts(self) -> RoleTimeouts:
        """The time limits of working sessions."""
        return RoleTimeouts(
            self.statement_timeout_seconds, self.lock_timeout_seconds, self.idle_in_transaction_timeout_seconds
        )

    @property
    def read_timeouts(self) -> RoleTimeouts:
        """The time limits of sessions that only look (F83)."""
        return RoleTimeouts(self.read_timeout_seconds, self.lock_timeout_seconds, self.read_timeout_seconds)


class AddressSettings(_Section):
    """Where a destination is, and how it may be reached."""

    url: str | None = Field(
        default=None, description="Address of the consumer's endpoint; absent for in-process delivery."
    )
    allow_networks: tuple[str, ...] = Field(
        default=(),
        description="Host names, addresses or networks such as `10.0.0.0/8` that may be reached though private (F86).",
    )
    ca_file: Path | None = Field(default=None, description="Certificates to trust instead of the system's.")


class WorkloadSettings(_Section):
    """Who this dispatcher is to the consumers it calls."""

    name: str = Field(
        default="dispatcher", pattern=r"^[a-z][a-z0-9_.-]{0,99}$", description="Subject of the workload tokens."
    )
    issuer: str = Field(default="seapost", min_length=1, max_length=200, description="Issuer of the workload tokens.")
    private_key_file: Path | None = Field(
        default=None, description="Ed25519 private key in PEM form that signs the tokens."
    )


class ReceiverSettings(_Section):
    """The endpoint of `seapost serve`; a limit that is left out is the receiver's own."""

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: Port = Field(default=8700, description="Port to listen on; 0 takes a free one.")
    issuer: str = Field(
        default="seapost", min_length=1, max_length=200, description="The one token issuer that is believed."
    )
    public_key_files: tuple[Path, ...] = Field(
        default=(),
        description="Ed25519 public keys in PEM form that tokens may be signed for; two while a key is rotated.",
    )
    workloads: tuple[str, ...] = Field(
        default=(), description="Workloads that may call; empty, every workload of the issuer."
    )
    unauthenticated: bool = Field(
        default=False, description="Check no tokens at all: only for a receiver that nobody else can reach."
    )
    drain_seconds: Seconds = Field(default=20.0, description="How long requests may still run after a signal to stop.")
    body_bytes_max: int | None = Field(
        default=None, ge=1_024, le=1_073_741_824, description="Largest request body that is read, in bytes."
    )
    body_seconds: float | None = Field(default=None, gt=0, le=3_600, description="Longest wait for a request body.")
    deliveries_max: int | None = Field(default=None, ge=1, le=10_000, description="Most deliveries in one request.")
    concurrency_max: int | None = Field(
        default=None, ge=1, le=10_000, description="Requests worked on at a time; more are told to come again."
    )
    handle_seconds: float | None = Field(default=None, gt=0, le=3_600, description="Longest handling of one request.")
    retry_after_seconds: int | None = Field(
        default=None, ge=1, le=3_600, description="When a caller that was refused for want of capacity may come again."
    )

    @property
    def limits(self) -> dict[str, float]:
        """The limits that were set."""
        names = (
            "body_bytes_max",
            "body_seconds",
            "deliveries_max",
            "concurrency_max",
            "handle_seconds",
            "retry_after_seconds",
        )
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class LogSettings(_Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level that is written."
    )


class DisplaySettings(_Section):
    """What operators are shown."""

    masked_fields: tuple[str, ...] = Field(
        default=("password", "secret", "token", "authorization", "iban", "card_number"),
        description="Payload fields whose values `event show --payload` hides, in any case and at any depth.",
    )


class MonitorSettings(_Section):
    """Health and metrics of `seapost dispatch`."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: Port | None = Field(
        default=None, description="Port for `/livez` and `/metrics`; absent, there is none; 0 takes a free one."
    )
    backlog_seconds: float = Field(
        default=5.0, ge=0.5, le=3_600, description="How often the figures of the queues are read from the database."
    )
    region: str = Field(default="", max_length=100, description="Deployment region that the metrics carry (MET-05).")


@dataclass(frozen=True, slots=True)
class DestinationEntry:
    """One destination: how it is served and where it is."""

    worker: DestinationSettings
    address: AddressSettings


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of one process.

    Attributes:
        file: the TOML file that was read, None when there was none.
        database: the database with the outbox.
        consumer: the consumer's own database, with its receipts.
    """

    file: Path | None
    database: DatabaseSettings
    consumer: DatabaseSettings
    dispatcher: DispatcherSettings
    destinations: Mapping[str, DestinationEntry]
    workload: WorkloadSettings
    receiver: ReceiverSettings
    monitor: MonitorSettings
    display: DisplaySettings
    log: LogSettings


SECTIONS: Final[Mapping[str, type[Any]]] = {
    "database": DatabaseSettings,
    "consumer": DatabaseSettings,
    "dispatcher": DispatcherSettings,
    "workload": WorkloadSettings,
    "receiver": ReceiverSettings,
    "monitor": MonitorSettings,
    "display": DisplaySettings,
    "log": LogSettings,
}
_DESTINATIONS: Final[Place] = ("destinations", MANY)

SectionT = TypeVar("SectionT")


def known_fields() -> tuple[SettingField, ...]:
    """Every setting there is."""
    return tuple(_known_fields())


def _known_fields() -> Iterator[SettingField]:
    for name, model in SECTIONS.items():
        yield from fields_of((name,), model)
    yield from fields_of(_DESTINATIONS, AddressSettings)
    yield from fields_of(_DESTINATIONS, DestinationSettings)


def load_settings(
    *,
    file: Path | None = None,
    flags: Mapping[Place, object] | None = None,
    environment: Mapping[str, str] | None = None,
    destinations: tuple[str, ...] = (),
) -> Settings:
    """Read, merge and validate every layer.

    Args:
        file: the TOML file; absent, `SEAPOST_CONFIG`, else `seapost.toml` if there is one.
        flags: what the command line says, by place; None values were not given.
        environment: absent, the process's own.
        destinations: names that variables may speak of though no file does.

    Raises:
        InvalidSetting: a setting is unknown or breaks its rule; the message names it, its rule and where it stands.
    """
    variables = os.environ if environment is None else environment
    known = known_fields()
    path = _file(file, variables)
    from_file = {} if path is None else file_layer(path, known)
    names = {place[1] for place in from_file if place[0] == "destinations"} | set(destinations)
    from_environment = environment_layer(variables, known, sorted(names))
    from_flags = {
        place: Given(value, f"--{place[-1].replace('_', '-')}")
        for place, value in (flags or {}).items()
        if value is not None
    }
    layer = merged(from_flags, from_environment, from_file)
    _refuse_two_databases(layer)
    named = sorted({place[1] for place in layer if place[0] == "destinations"})
    return Settings(
        file=path,
        database=_section(DatabaseSettings, ("database",), layer),
        consumer=_section(DatabaseSettings, ("consumer",), layer),
        dispatcher=_section(DispatcherSettings, ("dispatcher",), layer),
        destinations={name: _destination(name, layer) for name in named},
        workload=_section(WorkloadSettings, ("workload",), layer),
        receiver=_section(ReceiverSettings, ("receiver",), layer),
        monitor=_section(MonitorSettings, ("monitor",), layer),
        display=_section(DisplaySettings, ("display",), layer),
        log=_section(LogSettings, ("log",), layer),
    )


def _file(given: Path | None, variables: Mapping[str, str]) -> Path | None:
    """The file somebody named must exist; the default file may be absent."""
    if given is not None:
        return given
    if variables.get(FILE_VARIABLE):
        return Path(variables[FILE_VARIABLE])
    return DEFAULT_FILE if DEFAULT_FILE.exists() else None


def _refuse_two_databases(layer: Layer) -> None:
    """A connection string from a stronger layer replaces an embedded server of a weaker one; in one layer it cannot."""
    for section in ("database", "consumer"):
        dsn, embedded = layer.get((section, "dsn")), layer.get((section, "embedded"))
        if dsn is None or embedded is None:
            continue
        if dsn.source == embedded.source:
            raise InvalidSetting(f"{section}.embedded: give it or {section}.dsn, not both ({dsn.source})")
        weaker = "embedded" if _strength(dsn) >= _strength(embedded) else "dsn"
        del layer[section, weaker]


def _strength(given: Given) -> int:
    if given.source.startswith("--"):
        return 2
    return 1 if given.source.startswith("SEAPOST_") else 0


def _destination(name: str, layer: Layer) -> DestinationEntry:
    place = ("destinations", name)
    mine = {key: given for key, given in layer.items() if key[:2] == place}
    address = {key: given for key, given in mine.items() if key[2] in AddressSettings.model_fields}
    worker = {key: given for key, given in mine.items() if key not in address}
    try:
        return DestinationEntry(
            _section(DestinationSettings, place, worker, name=name), _section(AddressSettings, place, address)
        )
    except InvalidSetting as error:
        if "(" not in error.message:  # the name of the table itself is the mistake
            raise InvalidSetting(f"{error.message} ({next(iter(mine.values())).source})") from None
        raise


def _section(model: type[SectionT], place: Place, layer: Layer, **fixed: object) -> SectionT:
    given = {key[-1]: item for key, item in layer.items() if key[:-1] == place}
    values = {name: item.value for name, item in given.items()} | fixed
    dotted = ".".join(place)
    try:
        return TypeAdapter(model).validate_python(values)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = [str(part) for part in problem["loc"]]
        raise InvalidSetting(f"{dotted}.{'.'.join(path)}: {problem['msg']}{_where(given, path[:1])}") from None
    except InvalidSetting as error:
        field = error.message.partition(":")[0]
        raise InvalidSetting(f"{dotted}.{error.message}{_where(given, [field])}") from None


def _where(given: Mapping[str, Given], names: Sequence[str]) -> str:
    return "".join(f" ({given[name].source})" for name in names if name in given)
