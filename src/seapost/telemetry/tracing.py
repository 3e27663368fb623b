"""W3C Trace Context from the producer's transaction to the consumer's handler.

The envelope's correlation carries a `traceparent`. OpenTelemetry is used when the application has it
installed (extra `otel`); without it the context is only carried: what a handler appends belongs to the
trace of the event it handles.

A consumer's span is *linked* to the producer's span and does not become its child: the event may arrive
minutes later and many times, and a trace that never ends helps nobody.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

try:
    from opentelemetry import trace as opentelemetry_trace
except ImportError:  # the extra is not installed
    opentelemetry_trace = None

TRACER: Final = "seapost"

_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.ASCII)
_NOTHING: Final = nullcontext()
_carried: ContextVar[str | None] = ContextVar("seapost_traceparent", default=None)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The parts of a valid `traceparent`; ids are lower-case hexadecimal."""

    trace_id: str
    parent_id: str
    flags: str

    def traceparent(self) -> str:
        """The header form, in version 00."""
        return f"00-{self.trace_id}-{self.parent_id}-{self.flags}"


def parse_traceparent(text: object) -> TraceContext | None:
    """The parts of a `traceparent`; None when the text is not one (W3C Trace Context, section 3.2).

    An invalid context is ignored, never an error: it must not stop an event.
    """
    if not isinstance(text, str):
        return None
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    version, trace_id, parent_id, flags = match.groups()
    if version == "ff" or trace_id == "0" * 32 or parent_id == "0" * 16:
        return None
    return TraceContext(trace_id, parent_id, flags)


def current_traceparent() -> str | None:
    """The `traceparent` for an event appended now: the current span, else the event being handled."""
    if opentelemetry_trace is not None:
        context = opentelemetry_trace.get_current_span().get_span_context()
        if context.is_valid:
            return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    return _carried.get()


def handling(name: str, traceparent: str | None, attributes: Mapping[str, str | int]) -> AbstractContextManager[None]:
    """Run a handler as a consumer span linked to the producer's; only carry the context when nobody records spans.

    Attributes must be low in sensitivity: event type, consumer, attempt number; no payload.
    """
    recording = is_recording()
    if traceparent is None and not recording:
        return _NOTHING
    return _handling(name, parse_traceparent(traceparent), attributes, is_recording=recording)


@contextmanager
def _handling(
    name: str, context: TraceContext | None, attributes: Mapping[str, str | int], *, is_recording: bool
) -> Generator[None]:
    token = _carried.set(None if context is None else context.traceparent())
    try:
        if is_recording and opentelemetry_trace is not None:
            tracer = opentelemetry_trace.get_tracer(TRACER)
            with tracer.start_as_current_span(
                name,
                kind=opentelemetry_trace.SpanKind.CONSUMER,
                links=_links(context),
                attributes=attributes,
                record_exception=False,  # its message may quote the payload
                set_status_on_exception=False,
            ):
                yield
        else:
            yield
    finally:
        _carried.reset(token)


def is_recording() -> bool:
    """Whether the application has set up OpenTelemetry; without that, spans cost time and go nowhere."""
    return opentelemetry_trace is not None and not isinstance(
        opentelemetry_trace.get_tracer_provider(), opentelemetry_trace.ProxyTracerProvider
    )


def _links(context: TraceContext | None) -> list[Any]:
    if context is None or opentelemetry_trace is None:
        return []
    span_context = opentelemetry_trace.SpanContext(
        trace_id=int(context.trace_id, 16),
        span_id=int(context.parent_id, 16),
        is_remote=True,
        trace_flags=opentelemetry_trace.TraceFlags(int(context.flags, 16)),
    )
    return [opentelemetry_trace.Link(span_context)]
