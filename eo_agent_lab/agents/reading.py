"""Reading a question by rules: what is asked, of which scene, when, where, and of which objects."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from eo_agent_lab.perception.recorded import SYNONYMS

Kind = Literal["trend", "cover", "count", "relation", "value", "unknown"]
Search = Literal["previous", "next", "named"]

_HANDLE = re.compile(r"\bhandle\s*[:=]\s*([\w./-]+)", re.IGNORECASE)
_SCENE_ID = re.compile(r"(?<![\w/])(?:EO_GYM_DATA/)?[0-9a-f]{16}(?!\w)")
_CAPTURED = re.compile(r"\bcaptured\s*[:=]?\s*(\d{4}-\d{2}-\d{2})", re.IGNORECASE)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_AOI = re.compile(r"\[\s*(-?[\d.]+)\s*,\s*(-?[\d.]+)\s*,\s*(-?[\d.]+)\s*,\s*(-?[\d.]+)\s*\]")
_ONE_OF = re.compile(r"\bone of:?\s*([^.?!]+)", re.IGNORECASE)
_RANGE = re.compile(r"\bwhole number from (\d+) to (\d+)", re.IGNORECASE)
_PIVOT = re.compile(
    r"\b(?:before|precedes?|preceding|after|follows?|following)\s+(\d{4}-\d{2}-\d{2})",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"\b(?:at most|differ by|within)\s+(0?\.\d+)", re.IGNORECASE)

_THEMES = {
    "NDVI": r"vegetat\w*|green\w*|crops?|forests?|plants?",
    "NDWI": r"water|flood\w*|lakes?|rivers?|wet\w*",
    "NDBI": r"built|urban|cit(?:y|ies)|buildings?|settlements?|impervious",
    "NDSI": r"snow\w*|ice|glaciers?",
}
THEMES = {"NDVI": "vegetation", "NDWI": "open water", "NDBI": "built-up land", "NDSI": "snow"}

_FAMILIES = (("sentinel-2", r"sentinel[- ]?2\w?"), ("landsat", r"landsat(?:[- ]?\d)?"))

_COVER = r"largest share|most of the|dominat\w+|dominant|covers? the (?:most|largest)|prevail\w*"
_TREND = r"increas\w*|decreas\w*|chang\w*|between|becom\w*|became|happen\w*|grow\w*|grew|declin\w*|"
_TREND += (
    r"compared|trend|more or less|than (?:before|in|on)|rise|fall|rose|fell|drop\w*|gain\w*|los[st]"
)
_COUNT = r"how many|count|number of|outnumber"
_RELATION = r"relative to|direction|which way|seen from|where\b"
_ORIGIN = (
    r"(?:relative to|seen from|starting at|looking from|from|of)"
    r"(?: the| a| an)?(?: only| single)?\s*$"
)


class Question(NamedTuple):
    """What a question says.

    Attributes:
        kind: What is asked.
        handle: The scene it shows, as written; None when it names none.
        captured: The date of that scene, ISO, when the header states it.
        dates: Other dates in the order they stand in the text.
        search: How the second observation of a trend is to be found.
        pivot: The date that it precedes or follows, when the question names one.
        family: Sensor family that look-ups are limited to, or None.
        index_name: Spectral index asked about, or None.
        aoi: [x0, y0, x1, y1] as fractions, or None for the whole scene.
        objects: Object categories in the order asked; for a relation the one that is looked for
            first, then the one it is seen from.
        operation: ``+`` or ``-`` when two counts are to be combined.
        threshold: Difference that still counts as unchanged, when the question states it.
        choices: The answers that the question allows; empty when it states none.
    """

    kind: Kind
    handle: str | None
    captured: str | None
    dates: list[str]
    search: Search
    pivot: str | None
    family: str | None
    index_name: str | None
    aoi: list[float] | None
    objects: list[str]
    operation: str
    threshold: float | None
    choices: list[str]

    @property
    def theme(self) -> str:
        """Return the index's subject in words."""
        return THEMES.get(self.index_name or "", "the index")


def read_question(text: str) -> Question:
    """Return what a question says, as far as the rules reach; ``kind`` is unknown beyond that."""
    header, body = _split(text)
    choices = read_choices(body)
    area = _AOI.search(body)
    asked = _ONE_OF.sub(" ", _RANGE.sub(" ", _AOI.sub(" ", body)))
    mentions = _mentions(asked)
    handle = _HANDLE.search(header) or _HANDLE.search(body)
    bare = _SCENE_ID.search(text)
    captured = _CAPTURED.search(header)
    threshold = _WITHIN.search(asked)
    pivot = _PIVOT.search(asked)
    kind = _kind(asked, choices, mentions)
    return Question(
        kind,
        handle[1] if handle else (bare[0] if bare else None),
        captured[1] if captured else None,
        _DATE.findall(asked),
        _search(asked),
        pivot[1] if pivot else None,
        next((key for key, words in _FAMILIES if _has(words, asked)), None),
        _index(asked),
        [float(number) for number in area.groups()] if area else None,
        _objects(asked, mentions, kind),
        _operation(asked),
        float(threshold[1]) if threshold else None,
        choices,
    )


def read_choices(text: str) -> list[str]:
    """Return the answers that a question's last sentence allows, in order; empty without any."""
    numbers = _RANGE.search(text)
    if numbers:
        first, last = int(numbers[1]), int(numbers[2])
        return [str(number) for number in range(first, min(last, first + 1000) + 1)]
    listed = _ONE_OF.findall(text)
    if not listed:
        return []
    parts = re.split(r"\s*(?:,|;|\bor\b)\s*", listed[-1])
    return [part.strip(" \"'") for part in parts if part.strip(" \"'")]


def _split(text: str) -> tuple[str, str]:
    """Return the bracketed header, empty when there is none, and the rest."""
    header = re.match(r"\s*\[([^\]]*)\]", text)
    if header is None or _AOI.match(text.strip()):
        return "", text
    return header[1], text[header.end() :]


def _has(pattern: str, text: str) -> bool:
    return re.search(rf"\b(?:{pattern})", text, re.IGNORECASE) is not None


def _kind(asked: str, choices: list[str], mentions: list[tuple[int, str]]) -> Kind:
    if mentions and _has(_COUNT, asked):
        return "count"
    if len({name for _, name in mentions}) == 2 and _has(_RELATION, asked):
        return "relation"
    if _has(_COVER, asked) and (len(choices) > 1 or len(_indices(asked)) > 1):
        return "cover"
    if _index(asked) and _has(_TREND, asked):
        return "trend"
    return "value" if _index(asked) else "unknown"


def _indices(asked: str) -> list[str]:
    return [name for name, words in _THEMES.items() if _has(rf"{name}|{words}", asked)]


def _index(asked: str) -> str | None:
    named = [name for name in _THEMES if _has(name, asked)]
    found = named or _indices(asked)
    return found[0] if found else None


def _search(asked: str) -> Search:
    if _has(r"previous|preced\w+|before|last\b.*\bbefore|earlier", asked):
        return "previous"
    if _has(r"next|after|follow\w*|subsequent", asked):
        return "next"
    return "named"


def _operation(asked: str) -> str:
    if _has(r"how many more|how many fewer|outnumber|minus|difference", asked):
        return "-"
    return "+"


def _vocabulary() -> dict[str, str]:
    words = {}
    for category, synonyms in SYNONYMS.items():
        spoken = category.replace("-", " ")
        words[spoken] = spoken
        words |= {word: word for word in synonyms}
    return words


def _mentions(asked: str) -> list[tuple[int, str]]:
    """Return the object words of a text with their places; longer words win over their parts."""
    found: list[tuple[int, str]] = []
    taken: list[range] = []
    for word in sorted(_vocabulary(), key=lambda item: (-len(item), item)):
        flexible = word.replace(" ", "[ -]")
        for match in re.finditer(rf"\b{flexible}(?:e?s)?\b", asked, re.IGNORECASE):
            if not any(match.start() in span for span in taken):
                taken.append(range(match.start(), match.end()))
                found.append((match.start(), word))
    return sorted(found)


def _objects(asked: str, mentions: list[tuple[int, str]], kind: Kind) -> list[str]:
    names = list(dict.fromkeys(name for _, name in mentions))
    if kind != "relation":
        return names
    origins = [name for start, name in mentions if re.search(_ORIGIN, asked[:start], re.IGNORECASE)]
    if origins and origins[-1] == names[0]:
        names.reverse()
    return names
