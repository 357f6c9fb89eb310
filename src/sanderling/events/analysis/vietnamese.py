"""How Vietnamese is written, where that differs from how it is typed: without marks, with either place of the tone.

And whether a text is Vietnamese at all, as far as it matters for what single letters mean in it.
"""

import re
from collections.abc import Collection
from unicodedata import normalize

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
