"""Puts the program into the wheel, and names the platforms that it runs on. Knows two variables, not how the program is built."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # type: ignore[import-not-found, unused-ignore]


class ProgramHook(BuildHookInterface):  # type: ignore[misc, unused-ignore]
    """`MCPROOF_PROGRAM` is the path of the program, `MCPROOF_PLATFORM` the platform tag, such as `manylinux_2_28_x86_64`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program, platform = (os.environ.get(name) for name in ("MCPROOF_PROGRAM", "MCPROOF_PLATFORM"))
        if not program or not platform:
            raise SystemExit("the wheel holds a program that is built before: run `cargo xtask packages`")
        build_data["shared_scripts"] = {program: "mcproof.exe" if platform.startswith("win") else "mcproof"}
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
