"""What a program may read: the standard library, the shared libraries, time zones, a few devices; numpy if asked for.

Not ``sys.prefix`` as a whole: installed packages can hold the tests of a data set.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_NOT_OF_STDLIB = ("site-packages", "dist-packages", "test", "idlelib", "turtledemo", "ensurepip", "lib2to3", "config")
_SYSTEM = ("/lib64", "/usr/lib64", "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


@dataclass(frozen=True)
class Readable:
    """stdlib: its folder, not itself readable. trees: may be read and listed. bound: what a new root must hold.
    hidden: folders within ``bound`` that must look empty.

    The importer's list of the folder itself is the server's, made before the lock.
    """

    stdlib: Path
    trees: tuple[Path, ...]
    bound: tuple[Path, ...]
    hidden: tuple[Path, ...]


def find(packages: Path | None) -> Readable:
    """For this interpreter. packages: the folder with numpy, None without it."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    entries = tuple(entry for entry in stdlib.iterdir() if not entry.name.startswith(_NOT_OF_STDLIB))
    libraries = (*_library_folders(), *Path(sys.base_prefix, "lib").glob("*.so*"), *map(Path, _SYSTEM))
    extra = tuple(packages / name for name in ("numpy", "numpy.libs")) if packages else ()
    hidden = tuple(stdlib / name for name in _NOT_OF_STDLIB)
    bound = tuple(dict.fromkeys((stdlib, *libraries)))
    # the packages come after what is hidden: they may lie below it
    return Readable(stdlib, (*entries, *libraries, *extra, *map(Path, _DEVICES)), (*bound, *extra), hidden)


def _library_folders() -> list[Path]:
    triplet = sysconfig.get_config_var("MULTIARCH")
    return [Path(root, triplet) for root in ("/lib", "/usr/lib")] if triplet else []
