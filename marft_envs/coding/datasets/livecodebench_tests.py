"""Decoding of LiveCodeBench's private tests: JSON, pickled, compressed with zlib, in base64.

Unpickling can run any code, so nothing is unpickled: the pickle's instructions are listed, and its string is taken if
it contains nothing else.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

from marft_envs.datasets.dataset_spec import Unusable

_MAX_BYTES = 1 << 30
_HARMLESS = ("PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "STOP")
_STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")


def decode_tests(text: str) -> list[dict[str, Any]]:
    """Return the tests.

    Args:
        text: The tests as JSON, or in the encoded form.

    Raises:
        Unusable: ``text`` is neither.
    """
    if not text.lstrip().startswith("["):
        text = _string_of_pickle(_inflate(text))
    try:
        tests = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"the private tests are not JSON ({error})"[:120]) from None
    if not isinstance(tests, list):
        raise Unusable(f"the private tests are a {type(tests).__name__}, expected a list")
    return tests


def _inflate(text: str) -> bytes:
    try:
        inflater = zlib.decompressobj()
        data = inflater.decompress(base64.b64decode("".join(text.split()), validate=True), _MAX_BYTES)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise Unusable(f"the private tests are neither JSON nor base64 of zlib ({error})"[:120]) from None
    if not inflater.eof:
        raise Unusable(f"the private tests are truncated or larger than {_MAX_BYTES} bytes")
    return data


def _string_of_pickle(data: bytes) -> str:
    found = []
    try:
        for instruction, argument, _ in pickletools.genops(data):
            if instruction.name in _STRINGS:
                found.append(argument)
            elif instruction.name not in _HARMLESS:
                raise Unusable(f"the private tests are a pickle of more than a string ({instruction.name})")
    except (ValueError, UnicodeError) as error:
        if isinstance(error, Unusable):
            raise
        raise Unusable(f"the private tests are not a pickle ({error})"[:120]) from None
    if len(found) != 1:
        raise Unusable(f"the private tests are a pickle of {len(found)} strings, expected one")
    return str(found[0])
