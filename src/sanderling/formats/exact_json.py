"""JSON whose numbers stay what they were: whole numbers of any size, and fractions with all their digits.

A fraction becomes a float if that float is written with the same value, as 0.1 and 1.50 are, and a Decimal otherwise.
"""

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

# Up to 15 digits, every decimal fraction survives the way into a float and back.
SURE = 16


def exact_fraction(text: str) -> float | Decimal:
    """The number that a text is, with all its digits."""
    number = float(text)
    if len(text) <= SURE and "e" not in text and "E" not in text:
        return number
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent of more than 18 digits: to any computer that is 0, or without end
        return number
    return number if Decimal(repr(number)) == exact else exact


_DECODER = msgspec.json.Decoder(float_hook=exact_fraction)
_PLAIN = msgspec.json.Decoder(float_hook=float)
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def decode_exact(data: bytes | str) -> Any:  # noqa: ANN401 - whatever JSON says
    """What `data` says. Raises msgspec.MsgspecError, UnicodeError or RecursionError."""
    return _DECODER.decode(data)


def decode_plain(data: bytes | str) -> Any:  # noqa: ANN401 - whatever JSON says
    """The same with floats for all fractions, which is what conditions compare with."""
    return _PLAIN.decode(data)


def encode_exact(value: object) -> bytes:
    """The JSON of a value that `decode_exact` gave."""
    return _ENCODER.encode(value)
