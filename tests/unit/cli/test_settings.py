"""Settings: three layers, one typed object, validated once, and refusals that name the field and not the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from seapost.cli.settings import Settings, known_fields, load_settings
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings
from seapost.model.errors import InvalidSetting

SECRET = "tr0ub4dor"

FILE = """\
[database]
dsn = "postgresql://app@file/orders"
statement_timeout_seconds = 7

[dispatcher]
drain_seconds = 3.5
poll_seconds = [0.01, 0.1]

[workload]
private_key_file = "keys/private.pem"

[receiver]
public_key_files = ["keys/public.pem", "keys/next.pem"]

[destinations.billing]
url = "https://billing.example/"
batch_size = 50
allow_networks = ["10.0.0.0/8"]

[destinations."mail.eu-1"]
url = "https://mail.example/"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a settings file that uses every shape of value."""
    path = tmp_path / "seapost.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def _load(file: Path | None = None, environment: dict[str, str] | None = None, **flags: object) -> Settings:
    places = {tuple(name.split("__")): value for name, value in flags.items()}
    return load_settings(file=file, environment=environment or {}, flags=places)


def _dsn(settings: Settings) -> str | None:
    return None if settings.database.dsn is None else settings.database.dsn.get_secret_value()


@pytest.mark.req("REF-13", "CLM-11")
def test_a_flag_wins_over_the_environment_and_that_over_the_file(file: Path) -> None:
    """The strongest layer that names a setting decides it, setting by setting."""
    variable = {"SEAPOST_DATABASE_DSN": "postgresql://app@environment/orders"}
    assert _dsn(_load(file)) == "postgresql://app@file/orders"
    assert _dsn(_load(file, variable)) == "postgresql://app@environment/orders"
    settings = _load(file, variable, database__dsn="postgresql://app@flag/orders")
    assert _dsn(settings) == "postgresql://app@flag/orders"
    assert settings.database.statement_timeout_seconds == 7


@pytest.mark.req("REF-13", "CLM-11", "RTY-04")
def test_every_worker_setting_can_be_given_in_each_layer(file: Path) -> None:
    """Batch, lease, drain and attempts come from the file or from variables, with their types."""
    settings = _load(
        file,
        {
            "SEAPOST_DESTINATIONS_BILLING_LEASE_SECONDS": "12.5",
            "SEAPOST_DESTINATIONS_BILLING_MAX_ATTEMPTS": "9",
            "SEAPOST_DESTINATIONS_MAIL_EU_1_LANES": "4",
            "SEAPOST_DISPATCHER_EXPECTED_DELIVERY_SET_VERSION": "3",
        },
    )
    billing = settings.destinations["billing"].worker
    assert (billing.batch_size, billing.lease_seconds, billing.max_attempts) == (50, 12.5, 9)
    assert settings.destinations["mail.eu-1"].worker.lanes == 4
    assert settings.dispatcher.drain_seconds == 3.5
    assert settings.dispatcher.poll_seconds == (0.01, 0.1)
    assert settings.dispatcher.expected_delivery_set_version == "3"


@pytest.mark.req("REF-13")
def test_a_variable_may_make_a_destination_that_a_flag_names() -> None:
    """A container without a file configures a destination by variables alone."""
    settings = load_settings(
        environment={"SEAPOST_DESTINATIONS_BILLING_URL": "https://billing.example/"}, destinations=("billing",)
    )
    assert settings.destinations["billing"].address.url == "https://billing.example/"


def test_defaults_are_those_of_the_owning_classes() -> None:
    """Without any layer the dispatcher has its own defaults, and no destination exists."""
    settings = load_settings(environment={})
    assert settings.dispatcher == DispatcherSettings()
    assert settings.destinations == {}


def test_paths_of_a_file_start_at_its_folder(file: Path) -> None:
    """A relative path in the file does not depend on where the command is run."""
    settings = _load(file)
    assert settings.workload.private_key_file == file.parent / "keys" / "private.pem"
    assert settings.receiver.public_key_files == (
        file.parent / "keys" / "public.pem",
        file.parent / "keys" / "next.pem",
    )


def test_lists_in_variables_have_commas() -> None:
    """A list setting in the environment is read as its parts."""
    settings = _load(None, {"SEAPOST_DISPLAY_MASKED_FIELDS": "pin, iban"})
    assert settings.display.masked_fields == ("pin", "iban")


@pytest.mark.req("REF-13")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[destinations.billing]\nbatch_size = 0", ["destinations.billing.batch_size", "1", "10000"]),
        ("[destinations.billing]\nlease_seconds = 'long'", ["destinations.billing.lease_seconds", "number"]),
        ("[dispatcher]\ndrain_seconds = -1", ["dispatcher.drain_seconds"]),
        ("[database]\npool_size = 0", ["database.pool_size", "greater than or equal to 1"]),
        ("[receiver]\nport = 70000", ["receiver.port", "65535"]),
        ("[log]\nlevel = 'loud'", ["log.level", "'debug', 'info', 'warning' or 'error'"]),
        ("[destinations.billing]\nbatchsize = 5", ["destinations.billing.batchsize", "billing.batch_size"]),
        ("[databse]\ndsn = 'x'", ["databse", "no setting"]),
        ("dsn = 'x'", ["dsn", "no setting"]),
        ("[database\n", ["no TOML"]),
        ("[database]\ndsn = 'host=a'\nembedded = 'data'", ["database.embedded", "not both"]),
        ("[destinations.Billing]\nurl = 'https://x/'", ["destinations.Billing", "name"]),
    ],
)
def test_a_mistake_is_named_with_field_rule_and_place(tmp_path: Path, text: str, words: list[str]) -> None:
    """Whatever is wrong, the message says which setting, which rule, and in which file."""
    path = tmp_path / "seapost.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSetting) as caught:
        _load(path)
    for word in [*words, str(path)]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("SEAPOST_DATABASE_DNS", ["SEAPOST_DATABASE_DNS", "SEAPOST_DATABASE_DSN"]),
        ("SEAPOST_DESTINATIONS_SEARCH_URL", ["SEAPOST_DESTINATIONS_SEARCH_URL"]),
        ("SEAPOST_DISPATCHER_DRAIN_SECONDS", ["dispatcher.drain_seconds", "SEAPOST_DISPATCHER_DRAIN_SECONDS"]),
    ],
)
def test_a_mistake_in_a_variable_is_named(variable: str, words: list[str]) -> None:
    """A misspelt variable of ours is refused instead of ignored, and a bad value names its variable."""
    with pytest.raises(InvalidSetting) as caught:
        _load(None, {variable: "soon"})
    for word in words:
        assert word in str(caught.value)


def test_variables_of_others_are_left_alone() -> None:
    """A variable that only starts like ours belongs to somebody else."""
    assert _load(None, {"SEAPOST_TEST_DSN": "x", "SEAPOSTING": "y"}).destinations == {}


def test_a_named_file_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that somebody named and that is not there is a mistake; the default file may be absent."""
    monkeypatch.chdir(tmp_path)
    assert load_settings(environment={}).file is None
    for given in ({"SEAPOST_CONFIG": "absent.toml"}, {}):
        with pytest.raises(InvalidSetting, match=r"absent\.toml"):
            load_settings(file=None if given else Path("absent.toml"), environment=given)


@pytest.mark.req("SEC-17")
def test_a_password_is_in_no_representation_and_no_message(tmp_path: Path) -> None:
    """A connection string is a secret: no repr shows it, and a refusal never quotes a value."""
    settings = _load(None, {"SEAPOST_DATABASE_DSN": f"postgresql://app:{SECRET}@db/orders"})
    assert SECRET not in repr(settings)
    path = tmp_path / "seapost.toml"
    path.write_text(f'[database]\ndsn = ["{SECRET}"]', encoding="utf-8")
    with pytest.raises(InvalidSetting) as caught:
        _load(path)
    assert SECRET not in str(caught.value)


def test_a_stronger_layer_replaces_the_kind_of_database(tmp_path: Path) -> None:
    """A connection string from a flag wins over the embedded server that the file names."""
    path = tmp_path / "seapost.toml"
    path.write_text("[database]\nembedded = 'data'\n", encoding="utf-8")
    settings = _load(path, None, database__dsn="host=db")
    assert settings.database.embedded is None
    assert _dsn(settings) == "host=db"
    assert _load(path).database.embedded == tmp_path / "data"


@pytest.mark.req("REF-13")
def test_every_setting_is_described() -> None:
    """No setting is without a sentence, and each field of the worker's classes is one."""
    fields = known_fields()
    assert [field.place for field in fields if not field.description] == []
    named = {field.place[-1] for field in fields if field.place[0] == "destinations"}
    assert set(DestinationSettings.__dataclass_fields__) - {"name"} <= named
    assert {field.place[-1] for field in fields if field.place[0] == "dispatcher"} == set(
        DispatcherSettings.__dataclass_fields__
    )
