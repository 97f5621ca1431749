"""Language-model agents that observe the Earth through tools.

Importing this package makes ``gymnasium.make("EOGym-v0")`` work. Gymnasium itself is not imported
for that, since it brings NumPy, which must not load before its number of threads is fixed
(:func:`eo_agent_lab.conf.fix_threads`): the environment is registered once Gymnasium is there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

__version__ = "0.1.0"

ENV_ID = "EOGym-v0"
ENV_ENTRY_POINT = "eo_agent_lab.env.gym_env:EOGymEnv"


def register_env() -> None:
    """Register ``EOGym-v0`` with Gymnasium, importing that; a second call changes nothing."""
    from gymnasium.envs.registration import register, registry

    if ENV_ID not in registry:
        register(id=ENV_ID, entry_point=ENV_ENTRY_POINT)


class _RegisteringLoader(SourceFileLoader):
    """Runs a module's own code, then registers the environment."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        register_env()


class _GymnasiumFinder(MetaPathFinder):
    """Finds Gymnasium where it lies, once, and has it loaded by the loader above."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        spec.loader = _RegisteringLoader(spec.loader.name, spec.loader.path)
        return spec


if "gymnasium" in sys.modules:
    register_env()
elif not any(type(finder).__name__ == "_GymnasiumFinder" for finder in sys.meta_path):
    sys.meta_path.insert(0, _GymnasiumFinder())
