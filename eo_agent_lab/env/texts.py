"""The words of an episode: templates from ``prompts.yaml``, filled in and cut to a budget."""

from __future__ import annotations

from functools import cache
from string import Template

import yaml

from eo_agent_lab.env.action import replace_surrogates
from eo_agent_lab.errors import ConfigError
from eo_agent_lab.lake import Scene
from eo_agent_lab.paths import PACKAGE

MAX_OBSERVATION_CHARS = 8_000
"""Budget of one observation, about 2,000 tokens; the longest listing of a tool is within it."""


@cache
def _templates() -> dict[str, str]:
    text = (PACKAGE / "env" / "prompts.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def fill(key: str, **fields: object) -> str:
    """Return a template of ``prompts.yaml`` with its fields filled in.

    Raises:
        ConfigError: There is no such template, or it names a field that is not given.
    """
    templates = _templates()
    if key not in templates:
        raise ConfigError(f"prompts.yaml has no {key!r}; add it")
    try:
        return Template(templates[key]).substitute({k: str(v) for k, v in fields.items()})
    except KeyError as error:
        raise ConfigError(f"the template {key!r} names {error}, which is not known") from error


def cut(text: str, limit: int = MAX_OBSERVATION_CHARS) -> str:
    """Return a text of at most ``limit`` characters that UTF-8 can hold; a cut one says so."""
    text = replace_surrogates(text)
    if len(text) <= limit:
        return text
    # the note is measured at its longest, when everything is left out
    keep = max(0, limit - len(fill("cut", left_out=len(text), total=len(text))))
    return (text[:keep] + fill("cut", left_out=len(text) - keep, total=len(text)))[:limit]


def scene_header(number: int, scene: Scene) -> str:
    """Return what an agent may know of a start image, as one bracketed line."""
    facts = [f"handle: {scene.scene_id}"]
    if scene.acquired is not None:
        facts.append(f"captured: {scene.acquired.date().isoformat()}")
    facts.append(f"GSD {scene.gsd_m:g} m" if scene.gsd_m else "GSD unknown")
    if scene.sensor != "unknown":
        facts.append(f"sensor: {scene.sensor}")
    return fill("image", number=number, facts="; ".join(facts))
