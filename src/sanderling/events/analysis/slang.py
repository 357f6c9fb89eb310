"""Short forms of Vietnamese that people type, and what they stand for.

Many are words or units elsewhere: "a" is an article, "k" a thousand, "vs" a match. Those are replaced in Vietnamese
text only; and a single letter never behind a number, or behind a word like "size".
"""

import re

from sanderling.events.analysis.scan import BREAKS


def _table(forms: dict[str, str]) -> dict[str, str]:
    return {short: long for long, shorts in forms.items() for short in shorts.split()}


_ANYWHERE = _table(
    {
        "không": "ko hok hông hổng khum kô",
        "được": "đc đx",
        "biết": "bik bít",
        "thích": "thik thít thíc",
        "như thế nào": "ntn",
        "nhiều": "nhìu",
        "rồi": "rùi rồy",
        "luôn": "lun",
        "vui": "zui",
        "vậy": "zậy",
        "yêu": "iu iêu",
        "quá": "qá wá",
        "nhưng mà": "nma nhma",
        "hôm nay": "hnay",
        "mọi người": "mng",
    }
)
_IN_VIETNAMESE = _table(
    {
        "không": "k kh hong hem hk",
        "em": "e",
        "anh": "a",
        "chị": "c",
        "mình": "m mk mik",
        "tôi": "t",
        "gì": "j",
        "rồi": "r",
        "bạn": "b",
        "vậy": "z",
        "được": "dc dk",
        "với": "vs",
        "mọi người": "mn",
        "sản phẩm": "sp",
        "nhân viên": "nv",
        "cũng": "cx cg",
        "trước": "trc",
        "người": "ng",
        "bình thường": "bt bthg",
        "điện thoại": "đt",
        "nhắn tin": "nt",
        "trả lời": "tl",
        "quá": "wa",
        "làm": "lm",
        "mới": "ms",
    }
)
_EVERYWHERE = _ANYWHERE | _IN_VIETNAMESE
ANYWHERE = frozenset(_ANYWHERE)
SLANG = frozenset(_EVERYWHERE)

# "size m", "vitamin c": there the letter is a name.
_NAMED = ("size", "sz", "cỡ", "vitamin", "loại", "hạng", "nhóm", "lớp", "bản", "mẫu", "gói")

# Not all edges of words: "t-shirt", "c#" and "a/b" stay. The one before is taken and not just looked back at, since a
# search for one of few characters is the fastest there is.
_EDGE = f"[{re.escape(BREAKS)} '\"\u201c\u201d]"
# By their first letters: a search tries one after the other.
_BY_LETTER = [
    f"{letter}(?:{'|'.join(sorted([short[1:] for short in SLANG if short[0] == letter], reverse=True))})"
    for letter in sorted({short[0] for short in SLANG})
]
_SHORTS = re.compile(f"({_EDGE})({'|'.join(_BY_LETTER)})(?={_EDGE})")


def unslang(text: str, *, everything: bool) -> str:
    """A text in small letters with its short forms written out; `everything` is for text that is Vietnamese."""
    table = _EVERYWHERE if everything else _ANYWHERE

    def written_out(found: re.Match[str]) -> str:
        short = found[2]
        if short not in table or (len(short) == 1 and _is_a_name(found)):
            return found[0]
        return found[1] + table[short]

    return _SHORTS.sub(written_out, f" {text} ").strip()


def _is_a_name(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - 10) : found.start()]
    return before[-1:].isdigit() or before.endswith(_NAMED)
