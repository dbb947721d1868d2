"""LiveCodeBench's private tests: base64 of zlib of a pickled JSON text. Read without unpickling.

A pickle is a program, so it is not run: its instructions are listed, and a text is taken from it if it is nothing else.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

from marft_envs.datasets.specs import Unusable

_MOST_BYTES = 1 << 30
_HARMLESS = ("PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "STOP")
_TEXTS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")


def decode_tests(text: str) -> list[dict[str, Any]]:
    """The tests, from JSON or from the encoded form. Unusable says what is wrong with another text."""
    if not text.lstrip().startswith("["):
        text = _text_of_pickle(_inflate(text))
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
        data = inflater.decompress(base64.b64decode("".join(text.split()), validate=True), _MOST_BYTES)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise Unusable(f"the private tests are neither JSON nor base64 of zlib ({error})"[:120]) from None
    if not inflater.eof:
        raise Unusable(f"the private tests are cut, or larger than {_MOST_BYTES} bytes")
    return data


def _text_of_pickle(data: bytes) -> str:
    found = []
    try:
        for instruction, argument, _ in pickletools.genops(data):
            if instruction.name in _TEXTS:
                found.append(argument)
            elif instruction.name not in _HARMLESS:
                raise Unusable(f"the private tests are a pickle of more than a text ({instruction.name})")
    except (ValueError, UnicodeError) as error:
        if isinstance(error, Unusable):
            raise
        raise Unusable(f"the private tests are not a pickle ({error})"[:120]) from None
    if len(found) != 1:
        raise Unusable(f"the private tests are a pickle of {len(found)} texts, expected one")
    return str(found[0])
