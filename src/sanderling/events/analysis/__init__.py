"""What a post says and how people take it: text in, numbers out. Pure, Vietnamese and English, some 0.3 ms a post.

Terms. *Words*: a text cut at spaces and marks, with the marks that end a thought as words of their own. *Phrase*: one
or more words in a row, as data files list them. *Clean* text: in small letters, without links, emoji and slang; *vivid*
text: the same with emoji, which say much of how something was meant. *Own* words: those of the post, not of the
comments below it. *Pivot*: a word like `but`; what follows it weighs more. *Window*: the words around a keyword.

The stages: `preprocess`, `intent` (which may end it), `keywords`, `sentiment` with `lexicon` or `onnx` behind it,
`aspects`, `impact`; `analyse` is all of them. `data/` has what they know; `listing` reads it, and whatever a user puts
in its place.

Tricky bits. Nothing that a user writes becomes a regular expression, and no stage looks back: time grows with the
length of a text, and a text is cut at `preprocess.MOST_TEXT` characters. Vietnamese is often typed without its marks:
phrases of two or more words are found so as well, single words only where a file lists them, since `ban` may be four
words. A comment cannot silence a post: what makes a post spam is looked for in its own words only.
"""
