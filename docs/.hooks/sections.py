"""Order of the documentation: from learning to looking up, whatever pages exist."""

from __future__ import annotations

import re

from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

SECTIONS = (
    "Tutorials",
    "How to",
    "Reference",
    "HTTP interface",
    "SDK",
    "Examples",
    "Explanation",
    "Decisions",
    "Reports",
    "Specification",
)
PAGES_FIRST = ("tutorials/first-delivery.md", "explanation/walk.md")
TITLES = {"How to": "How-to guides", "Api": "HTTP interface", "Sdk": "SDK", "Spec": "Specification"}

LEADING_COMMENT = re.compile(r"\A\s*<!--.*?-->\s*", re.DOTALL)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Drop the remark of a generated page, which would hide its heading from the navigation."""
    return LEADING_COMMENT.sub("", markdown)


def on_nav(nav: Navigation, **_: object) -> Navigation:
    """Put the sections in the order of `SECTIONS`; single pages, the index first, stay before them.

    Inside a section pages are sorted by file name, except for the one to read first.
    """
    for item in nav.items:
        if isinstance(item, Section):
            item.title = TITLES.get(item.title, item.title)
            item.children.sort(key=lambda child: not (isinstance(child, Page) and child.file.src_uri in PAGES_FIRST))
    order = {TITLES.get(title, title): place for place, title in enumerate(SECTIONS)}
    nav.items.sort(key=lambda item: order.get(item.title or "", len(order)) if isinstance(item, Section) else -1)
    return nav
