"""The data lake: what was seen, where, when, and by which sensor."""

from eo_agent_lab.lake.lake import Lake
from eo_agent_lab.lake.scene import Band, Scene

__all__ = ["Band", "Lake", "Scene"]
