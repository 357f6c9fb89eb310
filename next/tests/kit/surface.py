"""How the third edition is called: a file of the acceptance kit's adapter."""

# Flags that a seed names, with the command that has them, and a value; those of systems that are not here yet are
# added with them.
SEEDS_FLAGS: list[tuple[tuple[str, ...], str, str]] = []


def typed(act: tuple[str, ...], flag: str, value: str) -> list[str]:
    return [*act, flag, *([value] if value else [])]


def words(words: list[str]) -> list[str]:
    return words
