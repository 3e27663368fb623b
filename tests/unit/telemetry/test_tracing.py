"""Trace context is carried from envelope to handler, and never stops an event."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

import pytest
from opentelemetry import trace

from seapost.telemetry import tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "text",
    [
        None,
        17,
        "",
        PARENT.upper(),
        PARENT + "-more",
        PARENT[:-1],
        "ff" + PARENT[2:],
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
    ],
)
def test_invalid_context_is_ignored(text: object) -> None:
    """Text that is no W3C traceparent is no context; a handler still runs under it."""
    assert tracing.parse_traceparent(text) is None
    with tracing.handling("billing", text if isinstance(text, str) else None, {}):
        assert tracing.current_traceparent() is None


@pytest.mark.parametrize("is_installed", [True, False])
def test_handler_continues_the_trace_of_its_event(monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    """Inside a handler the current context is the event's; outside it is none, with or without OpenTelemetry."""
    if not is_installed:
        monkeypatch.setattr(tracing, "opentelemetry_trace", None)
    with tracing.handling("billing", PARENT, {"seapost.event_type": "order.placed@1"}):
        assert tracing.current_traceparent() == PARENT
    assert tracing.current_traceparent() is None


def test_current_span_comes_first() -> None:
    """When the application has a span of its own, an event appended now belongs to that span."""
    span = trace.NonRecordingSpan(trace.SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=trace.TraceFlags(1)))
    with trace.use_span(span):
        assert tracing.current_traceparent() == f"00-{0xABC:032x}-{0xDEF:016x}-01"


def test_context_does_not_leak_out_of_a_failed_handler() -> None:
    """A handler that raises leaves no context behind."""
    with pytest.raises(LookupError), tracing.handling("billing", PARENT, {}):
        raise LookupError
    assert tracing.current_traceparent() is None


def test_recorded_span_is_linked_to_the_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tracer provider in place, a handler is a consumer span of its own with a link to the producer's span."""
    started: list[tuple[str, trace.SpanKind, tuple[trace.Link, ...]]] = []

    class Tracer:
        """Notes what is started."""

        @contextmanager
        def start_as_current_span(self, name: str, **options: object) -> Generator[trace.Span]:
            """Note the span and start none."""
            kind, links = options["kind"], options["links"]
            assert isinstance(kind, trace.SpanKind)
            assert isinstance(links, list)
            started.append((name, kind, tuple(cast("list[trace.Link]", links))))
            yield trace.INVALID_SPAN

    def tracer_of(_name: str) -> Tracer:
        return Tracer()

    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
    monkeypatch.setattr(trace, "get_tracer", tracer_of)
    with tracing.handling("billing", PARENT, {}):
        assert tracing.current_traceparent() == PARENT
    with tracing.handling("billing", None, {}):
        assert tracing.current_traceparent() is None
    ((name, kind, (link,)), (_, _, none)) = started
    assert (name, kind, none) == ("billing", trace.SpanKind.CONSUMER, ())
    assert f"{link.context.trace_id:032x}" in PARENT
    assert link.context.is_remote
