"""How Vietnamese is written, where that differs from how it is typed: without marks, with either place of the tone.

And whether a text is Vietnamese at all, as far as it matters for what single letters mean in it.

Slang: short forms that people type, and what they stand for. Many are words or units elsewhere: "a" is an article, "k"
a thousand, "vs" a match. Those are replaced in Vietnamese text only; and a single letter never behind a number, or
behind a word like "size".
"""

import re
from collections.abc import Collection
from unicodedata import normalize

from sanderling.events.analysis.scan import BREAKS

LOOK = 100  # characters: enough to see a language by
# Letters that hardly any other language has: a Vietnamese text has more of them than half its words, an English one
# that mentions a dish has one or two.
_MARKED = re.compile(r"[đơưạ-ỹ]")
_LEAST_SHARE = 0.25

# Small words that a text of any length has, with marks and without. None that is a word in both languages: "to", "do",
# "hay", "ban", "con" or "may" say nothing.
_VIETNAMESE = (
    "là và này không có cho mà thì mình của được những các một với như nhưng rất quá đã đang sẽ bị vì nên khi nếu em ạ"
    " nhé nhỉ nào đi ra vào rồi thôi lắm luôn cũng nữa vẫn chưa đừng hơi ơi chị bạn dc đc mn khong ko cua duoc"
    " nhung nay vay voi rat qua roi biet mua thich nhe nha neu minh oi bao nhieu giao dep xau tot luon cung nua thoi"
    " nhanh cham thay chua muon nhieu"
)
_ENGLISH = (
    "the is are was were be been this that these those it its i you he she we they my your his her our their and or"
    " but not of in on at for with from by as does did have has had will would could should very so just what when"
    " where who how why which there here about good great nice love like best bad one more some"
)
_SMALL_VIETNAMESE, _SMALL_ENGLISH = frozenset(_VIETNAMESE.split()), frozenset(_ENGLISH.split())

# Tones on "oa", "oe" and "uy" at the end of a syllable: an older and a newer school write them on different letters.
_OLD = "òa óa ỏa õa ọa òe óe ỏe õe ọe ùy úy ủy ũy ụy"
_NEW = "oà oá oả oã oạ oè oé oẻ oẽ oẹ uỳ uý uỷ uỹ uỵ"
_OTHER_SCHOOL = dict(zip(f"{_OLD} {_NEW}".split(), f"{_NEW} {_OLD}".split(), strict=True))
_TONE = re.compile(rf"(?<!q)(?:{'|'.join(_OTHER_SCHOOL)})(?!\w)")
_COMBINING = re.compile("[\u0300-\u036f]")


def looks_vietnamese(text: str, words: Collection[str]) -> bool:
    """Whether a text in small letters is Vietnamese rather than something else; not, if nothing tells."""
    look = text[:LOOK]
    marks = len(_MARKED.findall(look))
    if marks and marks >= _LEAST_SHARE * (look.count(" ") + 1):
        return True
    return len(_SMALL_VIETNAMESE.intersection(words)) > len(_SMALL_ENGLISH.intersection(words))


def without_marks(text: str) -> str:
    """The letters alone, as they are typed in a hurry."""
    return _COMBINING.sub("", normalize("NFD", text)).replace("đ", "d").replace("Đ", "D")


def spellings(phrase: str) -> list[str]:
    """A phrase as it may be written, the given form first.

    Without marks only from two words on: of single words too many would be the same, and some would be English.
    """
    forms = [phrase, _TONE.sub(lambda found: _OTHER_SCHOOL[found[0]], phrase)]
    if " " in phrase:
        forms.append(without_marks(phrase))
    return list(dict.fromkeys(forms))


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
