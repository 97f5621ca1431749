"""Reading an answer: from whatever an agent wrote to the one choice that it commits to.

Everything is decided by rules on words, in this order: a marked final answer is taken alone; idioms
are replaced by their meaning; a negation, a hedge or an alternative makes the answer unreadable;
what is left must name exactly one choice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

_MARK = re.compile(r"(?:final answer|answer|conclusion)(?:\s+is\b|\s*[:=])\s*", re.IGNORECASE)
_NEGATIONS = {"not", "no", "never", "neither", "nor", "without", "cannot", "hardly", "isnt", "none"}
_NEGATIONS |= {"didnt", "doesnt", "wasnt", "wont", "cant", "nothing", "rather", "instead", "except"}
_HEDGES = {"or", "maybe", "perhaps", "possibly", "might", "could", "either", "unsure", "uncertain"}
_HEDGES |= {"unclear", "unknown", "impossible", "undetermined", "insufficient", "both", "neither"}

_TREND_WORDS = {
    "increased": "increased increase increases increasing rose rise risen rises rising grew grow "
    "grown grows growing higher up upward more gained gain gains climbed climb greater larger",
    "decreased": "decreased decrease decreases decreasing fell fall fallen falls falling declined "
    "decline declines declining dropped drop drops lower down downward less reduced shrank shrunk "
    "lost loss smaller fewer sank diminished",
    "unchanged": "unchanged same stable constant steady similar equal static flat stagnant",
}
_COVER_WORDS = {
    "water": "water waters lake lakes sea river rivers",
    "vegetation": "vegetation vegetated plants greenery plant",
    "built-up": "builtup urban buildings developed settlement settlements impervious",
}
_IDIOMS = (
    (r"\bmore or less\b", " about "),
    (
        r"\b(?:no|not|without|hardly)(?: \w+){0,2} (?:chang\w*|differ\w*|increase or decrease)\b",
        " same ",
    ),
    (r"\bneither (?:increased? nor decreased?|rose nor fell)\b", " same "),
    (r"\bbuilt[ -]up\b|\bbuilt\b(?: area| land)?", " builtup "),
    (r"\bon top\b", " above "),
    (r"\bover to\b", " to "),
)
_COMPARISONS = re.compile(
    r"\b(?:more|less|greater|smaller|larger|higher|lower) than (?:the )?(?:[\d.]+|threshold)"
    r"|\bfalls? within\b|\b(?:higher|lower|more|less|up|down) (?:resolution|detail\w*|to date)"
)
"""Comparisons with a number or a manner of speaking, which tell no direction of change."""

_VERTICAL = {
    "above": "above up upper top upward upwards over upwardly north northern",
    "below": "below down lower bottom under beneath underneath downward downwards south southern",
}
_HORIZONTAL = {
    "left": "left leftward leftwards west western",
    "right": "right rightward rightwards east eastern",
}
_COMPASS = {"north", "northern", "south", "southern", "east", "eastern", "west", "western"}

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL.split())}
_NUMBER_WORDS |= {"twenty": 20, "thirty": 30, "dozen": 12}
_NUMBER = re.compile(
    r"(?<![\w.])[-+\u2212]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE
)
_MEASURE = re.compile(
    r"\d\s*(?:%|per ?cent|km|m|cm|mm|ha|hectares?|acres?|met(?:er|re)s?|kilomet\w+|m2|km2|"
    r"m²|km²|px|pixels?|degrees?|°|years?|days?|dn)(?![\w])",
    re.IGNORECASE,
)
_INEXACT = re.compile(
    r"~|≈|±|\d\s*\+(?!\s*\d)|[<>≤≥]|\bor so\b|\b(?:about|approximately|approx\.?|around|roughly|"
    r"nearly|almost|circa|at least|at most|more than|fewer than|less than|over|under|up to|some)"
    r"\s+(?:a |\d|" + "|".join(_SMALL.split()) + r")"
)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?\b", re.IGNORECASE)


def plain(answer: Any) -> str | None:
    """Return an answer as text: numbers written out, JSON and one-element lists unwrapped.

    Returns:
        The text, or None for what is no answer (None, a truth value, an empty or a mixed list).
    """
    if isinstance(answer, str):
        text = answer.strip()
        if text[:1] in "[{" and text[-1:] in "]}":
            try:
                return plain(json.loads(text))
            except json.JSONDecodeError:
                return text
        return text or None
    if isinstance(answer, bool) or answer is None:
        return None
    if isinstance(answer, int | float):
        if not math.isfinite(answer):
            return None
        return str(int(answer)) if answer == int(answer) else repr(answer)
    if isinstance(answer, dict):
        key = next((key for key in ("answer", "final_answer", "value") if key in answer), None)
        return plain(answer[key]) if key else None
    if isinstance(answer, list | tuple):
        found = {plain(item) for item in answer}
        return found.pop() if len(found) == 1 else None
    return None


def committed(text: str) -> str:
    """Return what follows the last marked final answer, or the whole text, in lower case."""
    tail = _MARK.split(text)[-1]
    lowered = (
        (tail or text).lower().replace("n't", " not").replace("\u2019", "'").replace("n't", " not")
    )
    return re.sub(r"^\s*(?:yes|no)\s*[,.;:!]\s+(?=\S)", "", lowered)


def _words(text: str) -> list[str]:
    for pattern, meaning in _IDIOMS:
        text = re.sub(pattern, meaning, text)
    return re.findall(r"[a-z0-9]+", text.replace("'", ""))


def _only(words: list[str], table: dict[str, str]) -> str | None:
    """Return the one entry of a table that words name; None for none, several or a doubt."""
    if set(words) & (_NEGATIONS | _HEDGES):
        return None
    found = {choice for choice, names in table.items() if set(words) & set(names.split())}
    return found.pop() if len(found) == 1 else None


def read_trend(text: str) -> str | None:
    """Return increased, decreased or unchanged."""
    return _only(_words(_spaced(_COMPARISONS.sub(" ", committed(text)))), _TREND_WORDS)


def read_cover(text: str) -> str | None:
    """Return water, vegetation or built-up."""
    return _only(_words(_spaced(committed(text))), _COVER_WORDS)


def read_direction(
    text: str, *, subject: str = "", origin: str = "", north_up: bool = False
) -> str | None:
    """Return one of the eight directions.

    Args:
        text: The answer.
        subject: What the question asks the place of, in plain words.
        origin: What it is seen from. An answer that tells where the origin lies from the subject
            is the question turned round, and is not read.
        north_up: Whether compass words may stand for image directions.
    """
    low = re.sub(r"\b(north|south)(east|west)", r"\1 \2", _spaced(committed(text)))
    if subject and origin and _turned_round(low, subject, origin):
        return None
    words = _words(low)
    if set(words) & (_NEGATIONS | _HEDGES) or (set(words) & _COMPASS and not north_up):
        return None
    parts = []
    for table in (_VERTICAL, _HORIZONTAL):
        found = [name for name, names in table.items() if set(words) & set(names.split())]
        if len(found) > 1:
            return None
        parts += found
    return " ".join(parts) or None


def _turned_round(text: str, subject: str, origin: str) -> bool:
    """Tell whether a text speaks of the origin first, and not as that which is looked from."""
    a, b = (re.search(rf"\b{re.escape(name)}s?\b", text) for name in (subject, origin))
    if a is None or b is None or b.start() > a.start():
        return False
    before = text[: b.start()].rstrip()
    return not re.search(r"\b(?:to|from|of|than|at|with)(?: the| a)?(?: only| single)?$", before)


def read_count(text: str, *, nouns: Callable[[str], bool] = lambda _: False) -> str | None:
    """Return a whole number as text; None for a quantity with a unit, a range or a guess.

    Args:
        text: The answer.
        nouns: Tells whether a word names what is counted, so that "no planes" is zero.
    """
    low = _DATE.sub(" ", committed(text))
    if _MEASURE.search(low) or _INEXACT.search(low):
        return None
    if "=" in low:
        low = low.rpartition("=")[2]
    none = re.fullmatch(
        r"(?:there (?:are|is|were) )?(?:no (\w+)(?:[ \w]*)|none|zero)(?: [ \w]*)?[.!]?", low
    )
    if none:
        return "0" if none[1] is None or nouns(none[1]) else None
    words = re.findall(r"[a-z]+", low.replace("'", ""))
    if set(words) & (_NEGATIONS | _HEDGES) or re.search(r"\d\s*(?:-|\u2013|to)\s*\d", low):
        return None
    values = {float(n.replace(",", "").replace("\u2212", "-")) for n in _NUMBER.findall(low)}
    values |= _worded(words)
    if len(values) != 1:
        return None
    value = values.pop()
    return str(int(value)) if value == int(value) else repr(value)


def _worded(words: list[str]) -> set[float]:
    found: set[float] = set()
    position = 0
    while position < len(words):
        value = _NUMBER_WORDS.get(words[position])
        following = _NUMBER_WORDS.get(words[position + 1], 0) if position + 1 < len(words) else 0
        if value in (20, 30) and 1 <= following <= 9:
            value, position = value + following, position + 1
        if value is not None:
            found.add(float(value))
        position += 1
    return found


def _spaced(text: str) -> str:
    return re.sub(r"[-_/\s]+", " ", text)
