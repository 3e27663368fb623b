"""All settings of OceanWay's processes, as one immutable object that is validated once (REF-13).

A setting comes from an environment variable `OCEANWAY_<SECTION>_<NAME>`, else from a TOML file, else from its default.
The file is the one that OCEANWAY_CONFIG names, `oceanway.toml` otherwise. A refusal names the place, never the value.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from psycopg import conninfo
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from oceanway.installation.layout import SERVED, Database, Process
from seapost.database.pool import check_dsn
from seapost.model.errors import InvalidSetting

DEFAULT_FILE: Final = Path("oceanway.toml")
FILE_VARIABLE: Final = "OCEANWAY_CONFIG"
PREFIX: Final = "OCEANWAY_"
NOT_SETTINGS: Final = frozenset({FILE_VARIABLE, "OCEANWAY_DEBUG"})
FIRST_PORT: Final = 8_701

Seconds = Annotated[float, Field(gt=0, le=3_600)]


class _Section(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False
    )


class DatabasesSettings(_Section):
    """Connection strings of the five databases; a process puts its own login role into the one it needs."""

    core: SecretStr | None = Field(default=None, description="Database of Core and Operations.")
    execution: SecretStr | None = Field(default=None, description="Database of Execution.")
    gateway: SecretStr | None = Field(default=None, description="Database of Gateway.")
    metering: SecretStr | None = Field(default=None, description="Database of Metering.")
    billing: SecretStr | None = Field(default=None, description="Database of Billing.")


class AddressesSettings(_Section):
    """Where each owner listens for deliveries and reads."""

    execution: str = f"http://127.0.0.1:{FIRST_PORT}"
    gateway: str = f"http://127.0.0.1:{FIRST_PORT + 1}"
    metering: str = f"http://127.0.0.1:{FIRST_PORT + 2}"
    billing: str = f"http://127.0.0.1:{FIRST_PORT + 3}"
    operations: str = f"http://127.0.0.1:{FIRST_PORT + 4}"


class TrustSettings(_Section):
    """Keys, passwords and who vouches for them."""

    issuer: str = Field(default="oceanway", min_length=1, max_length=200, description="Issuer of every workload token.")
    folder: Path = Field(
        default=Path(".oceanway"), description="Folder of the keys and passwords, relative to the settings file."
    )
    own_logins: bool = Field(default=True, description="Each process logs in with a role of its own.")


class DispatchSettings(_Section):
    """How each database's dispatcher carries its events."""

    batch_size: int = Field(default=200, ge=1, le=1_000, description="Deliveries per call.")
    lanes: int = Field(default=1, ge=1, le=16, description="Calls in flight per destination.")
    lease_seconds: float = Field(default=30.0, gt=0, le=3_600, description="How long a claim lasts without renewal.")
    timeout_seconds: float = Field(default=20.0, gt=0, le=3_600, description="Longest call.")
    backoff_base_seconds: float = Field(default=0.5, gt=0, le=3_600, description="First retry delay; it doubles.")
    backoff_max_seconds: float = Field(default=60.0, gt=0, le=86_400, description="Longest retry delay.")
    breaker_open_seconds: float = Field(
        default=5.0, gt=0, le=3_600, description="Rest after several failed calls; then one delivery probes."
    )


class ServeSettings(_Section):
    """How each owner's process receives and answers."""

    pool_size: int = Field(default=4, ge=2, le=64, description="Most connections for consumers, and for reads.")
    read_threads: int = Field(default=2, ge=1, le=32, description="Reads worked on at once.")
    drain_seconds: float = Field(default=20.0, gt=0, le=3_600, description="How long requests may run after a signal.")


class WorkSettings(_Section):
    """The pace of every work loop, and the connections of its process."""

    batch: int = Field(default=50, ge=1, le=1_000, description="Most works of one step.")
    idle_seconds_min: Seconds = Field(default=0.02, description="First rest when there is nothing to do.")
    idle_seconds_max: Seconds = Field(default=1.0, description="Longest such rest.")
    failure_seconds_min: Seconds = Field(default=0.1, description="First rest after a step that failed.")
    failure_seconds_max: Seconds = Field(default=5.0, description="Longest such rest.")
    lease_seconds: Seconds = Field(default=30.0, description="How long a work is held before another may take it.")
    pool_size: int = Field(default=2, ge=1, le=64, description="Most connections of the process.")


class Settings(_Section):
    """Everything that an installation is told."""

    databases: DatabasesSettings = DatabasesSettings()
    addresses: AddressesSettings = AddressesSettings()
    trust: TrustSettings = TrustSettings()
    dispatch: DispatchSettings = DispatchSettings()
    serve: ServeSettings = ServeSettings()
    work: WorkSettings = WorkSettings()

    def dsn(self, database: Database) -> str:
        """The connection string of a database as the settings have it; raise InvalidSetting when there is none."""
        found: SecretStr | None = getattr(self.databases, database)
        if found is None:
            raise InvalidSetting(f"databases.{database}: it is missing; name the database or run `oceanway init`.")
        return check_dsn(found.get_secret_value())

    def process_dsn(self, process: Process) -> str:
        """The connection string of a process: with its own login role and the file of its password."""
        dsn = self.dsn(process.database)
        if not self.trust.own_logins:
            return dsn
        parameters: dict[str, Any] = dict(conninfo.conninfo_to_dict(dsn))
        _ = parameters.pop("password", None)
        parameters |= {"user": process.login, "passfile": str(password_file(self.trust.folder))}
        return conninfo.make_conninfo("", **parameters)

    def address(self, owner: str) -> str:
        """Where an owner listens."""
        return str(getattr(self.addresses, owner))

    @property
    def owners(self) -> dict[str, str]:
        """The address of every owner that can be read."""
        return {owner: self.address(owner) for owner in SERVED}


def password_file(folder: Path) -> Path:
    """The passwords of the login roles, in the form that libpq reads."""
    return folder / "pgpass"


def load_settings(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read and validate the settings.

    Args:
        file: the TOML file; absent, the one that OCEANWAY_CONFIG names, else `oceanway.toml` where it exists.

    Raises:
        InvalidSetting: with the place of the first mistake.
    """
    variables = os.environ if environment is None else environment
    named = file or (Path(variables[FILE_VARIABLE]) if variables.get(FILE_VARIABLE) else None)
    path = (named or DEFAULT_FILE).absolute()
    document = _read(path, required=named is not None)
    for place, value in _from_environment(variables):
        document.setdefault(place[0], {})[place[1]] = value
    try:
        settings = Settings.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidSetting(f"{place}: {first['msg']}") from None
    folder = path.parent / settings.trust.folder
    return settings.model_copy(update={"trust": settings.trust.model_copy(update={"folder": folder})})


def _read(path: Path, *, required: bool) -> dict[str, dict[str, Any]]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise InvalidSetting(f"{path}: there is no such settings file.") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InvalidSetting(f"{path}: it cannot be read as TOML.") from None
    for section, content in document.items():
        if not isinstance(content, dict):
            raise InvalidSetting(f"{section}: it is a table.")
    return document


def _from_environment(variables: Mapping[str, str]) -> list[tuple[tuple[str, str], str]]:
    known = {
        f"{PREFIX}{section}_{name}".upper(): (section, name)
        for section, field in Settings.model_fields.items()
        for name in _names_of(field.annotation)
    }
    found: list[tuple[tuple[str, str], str]] = []
    for variable, value in variables.items():
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        if variable not in known:
            raise InvalidSetting(f"{variable}: there is no such setting.")
        found.append((known[variable], value))
    return found


def _names_of(section: object) -> list[str]:
    assert isinstance(section, type)  # noqa: S101 - every section is a class
    assert issubclass(section, BaseModel)  # noqa: S101 - as above
    return list(section.model_fields)
