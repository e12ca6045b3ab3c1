"""Addresses of pages: plain file names, whatever a record is called."""

import hashlib
import re

from benchmark.records.record import Record

_LONGEST = 80
# Names that Windows keeps for devices.
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def file_name(*words: object) -> str:
    """A file name of lower-case letters, digits, ``+``, ``.`` and hyphens.

    What cannot stand in it becomes a hyphen, and a hash keeps such names apart.

    Example:
        >>> file_name("fct:simclr"), file_name("open-class", "glyphs", "bct", 0)
        ('fct+simclr', 'open-class-glyphs-bct-0')
        >>> file_name("../etc")
        'etc-f7f9121f'
    """
    text = "-".join(str(word).replace(":", "+") for word in words)
    plain = re.sub(r"[^a-z0-9.+-]+", "-", text.lower()).strip("-.")[:_LONGEST]
    if plain == text and not _RESERVED.fullmatch(plain):
        return plain
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{digest}".strip("-")


def method_href(method: str) -> str:
    """Address of a method's page from the site's root."""
    return f"methods/{file_name(method)}.html"


def record_file(record: Record) -> str:
    """Name of a record's files, without an ending."""
    return f"{file_name(record.method)}-seed-{record.seed}"


def record_files(board: str, record: Record) -> str:
    """Address of these from the site's root, by the board's slug."""
    return f"records/{board}/{record_file(record)}"


def records_href(board: str, method: str) -> str:
    """Address of the page of a method's records on a board from the site's root."""
    return f"records/{board}/{file_name(method)}.html"


def record_href(board: str, record: Record) -> str:
    """Address of a record on that page."""
    return f"{records_href(board, record.method)}#seed-{record.seed}"
