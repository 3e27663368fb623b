"""Settings of the project; the database comes from `DJANGO_SHOP_DSN`."""

from __future__ import annotations

import os
from typing import Final

from psycopg.conninfo import conninfo_to_dict

_PARTS: Final = conninfo_to_dict(os.environ.get("DJANGO_SHOP_DSN", ""))

SECRET_KEY: Final = "only an example"  # noqa: S105 - nothing is signed here
USE_TZ: Final = True
DEFAULT_AUTO_FIELD: Final = "django.db.models.BigAutoField"
INSTALLED_APPS: Final = ["examples.django_shop"]
DATABASES: Final = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _PARTS.get("dbname", ""),
        "USER": _PARTS.get("user", ""),
        "PASSWORD": _PARTS.get("password", ""),
        "HOST": _PARTS.get("host", ""),
        "PORT": _PARTS.get("port", ""),
    }
}
