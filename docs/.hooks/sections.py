"""Order of the documentation: from learning to looking up, whatever pages exist."""

from __future__ import annotations

from mkdocs.structure.nav import Navigation, Section

SECTIONS = ("Tutorials", "How to", "Reference", "Explanation", "Decisions", "Specification")
TITLES = {"How to": "How-to guides", "Spec": "Specification"}


def on_nav(nav: Navigation, **_: object) -> Navigation:
    """Put the sections in the order of `SECTIONS`; single pages, the index first, stay before them."""
    for item in nav.items:
        if isinstance(item, Section):
            item.title = TITLES.get(item.title, item.title)
    order = {TITLES.get(title, title): place for place, title in enumerate(SECTIONS)}
    nav.items.sort(key=lambda item: order.get(item.title or "", len(order)) if isinstance(item, Section) else -1)
    return nav
