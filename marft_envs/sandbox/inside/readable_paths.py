"""Paths that a program may read: standard library, shared libraries, time zones, a few devices, optionally numpy.

The rest of ``sys.prefix`` is excluded, because an installed package can contain the tests of a data set.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_NOT_OF_STDLIB = ("site-packages", "dist-packages", "test", "idlelib", "turtledemo", "ensurepip", "lib2to3", "config-")
_SYSTEM = ("/lib64", "/usr/lib64", "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
# Without /dev/zero: a shared mapping of it is memory that no limit counts.
DEVICES = tuple(map(Path, ("/dev/null", "/dev/urandom", "/dev/random")))


@dataclass(frozen=True)
class Readable:
    """The readable paths of one interpreter.

    Attributes:
        stdlib: Folder of the standard library. It cannot be listed by a child: the importer uses the list that the
            server cached before.
        trees: Files and folders that may be read and listed.
        bound: Paths that a new root folder must contain.
        hidden: Folders within ``bound`` that must appear empty.
    """

    stdlib: Path
    trees: tuple[Path, ...]
    bound: tuple[Path, ...]
    hidden: tuple[Path, ...]


def find(packages: Path | None) -> Readable:
    """Return the readable paths of this interpreter. packages: the folder that contains numpy, None for no numpy."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    entries = tuple(entry for entry in stdlib.iterdir() if not entry.name.startswith(_NOT_OF_STDLIB))
    libraries = (*_library_folders(), *Path(sys.base_prefix, "lib").glob("*.so*"), *map(Path, _SYSTEM))
    extra = tuple(packages / name for name in ("numpy", "numpy.libs")) if packages else ()
    hidden = tuple(stdlib / name for name in _NOT_OF_STDLIB)
    bound = tuple(dict.fromkeys((stdlib, *libraries)))
    # numpy may be inside a hidden folder: the server imports it before it enters the namespaces
    return Readable(stdlib, (*entries, *libraries, *extra, *DEVICES), (*bound, *extra), hidden)


def _library_folders() -> list[Path]:
    triplet = sysconfig.get_config_var("MULTIARCH")
    return [Path(root, triplet) for root in ("/lib", "/usr/lib")] if triplet else []
