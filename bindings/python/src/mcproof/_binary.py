"""Finds the `mcproof` binary. Knows where wheels put scripts; does not start it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Iterator

VARIABLE = "MCPROOF_BINARY"
NAME = "mcproof.exe" if sys.platform == "win32" else "mcproof"


def find_binary() -> str:
    """The path of the binary: what `MCPROOF_BINARY` names, else the one of this wheel, else the one on PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.path.isfile(named):
            raise FileNotFoundError(f"{VARIABLE} names {named}, which does not exist")
        return named
    for candidate in _candidates():
        if candidate.is_file():
            return str(candidate)
    on_path = shutil.which(NAME)
    if on_path:
        return on_path
    raise FileNotFoundError(f"mcproof binary not found beside this package: install the wheel, or set {VARIABLE}")


def _candidates() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts")) / NAME
    package = Path(__file__).resolve().parent
    # `pip install --target FOLDER` puts scripts into FOLDER/bin, `--prefix` and `--user` beside their own lib.
    yield package.parent / "bin" / NAME
    for parent in package.parents:
        if parent.name in ("lib", "lib64"):
            yield parent.parent / "bin" / NAME
    yield package / NAME
