"""Which code made a result: a digest of the packages that it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from eo_agent_lab.paths import PACKAGE


def source_digest(packages: Iterable[str]) -> str:
    """Return twelve hexadecimal digits of the sources of some of our packages.

    Args:
        packages: Names below ``eo_agent_lab``; one that is not there counts as empty.
    """
    digest = hashlib.sha256()
    for package in sorted(packages):
        files = (p for p in (PACKAGE / package).rglob("*") if p.suffix in (".py", ".yaml"))
        for path in sorted(files):
            digest.update(f"{path.relative_to(PACKAGE).as_posix()}\x1f".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
