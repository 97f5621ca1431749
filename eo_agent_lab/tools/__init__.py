"""Tools an agent can call: the registry, the workspace, and thin typed adapters by family."""

from eo_agent_lab.tools.observation import Observation
from eo_agent_lab.tools.registry import Context, Tool, call_tool, list_tools, tool, validate_call
from eo_agent_lab.tools.workspace import Workspace

__all__ = [
    "Context",
    "Observation",
    "Tool",
    "Workspace",
    "call_tool",
    "list_tools",
    "tool",
    "validate_call",
]
