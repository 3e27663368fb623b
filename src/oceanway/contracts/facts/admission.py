"""What core admitted (REF-17)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from oceanway.contracts.base import Contract
from oceanway.contracts.order import ascending
from oceanway.contracts.quads import RunAdmissionManifestQuad
from oceanway.contracts.subject import RunFields
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Identifier, Timestamp


class AdmittedStep(Contract):
    """One step of an admitted run, and what each of its attempts may be charged for."""

    run_step_id: Identifier
    charge_dimension_keys: Annotated[list[Identifier], Field(min_length=1), ascending()]


class RunAdmissionManifest(
    RunAdmissionManifestQuad, RunFields, ContentAddressed, prefix="runAdmissionManifest", outside=("createdAt",)
):
    """The steps of a run as they were admitted."""

    steps: Annotated[list[AdmittedStep], Field(min_length=1), ascending("run_step_id")]
    created_at: Timestamp
