"""One flat family of errors; every message says what was wrong and what to do next."""

from __future__ import annotations


class EOLabError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(EOLabError):
    """A setting is missing, unknown or contradictory."""


class SceneError(EOLabError):
    """A scene on disk cannot be understood (unreadable file, no band, wrong date, duplicate)."""


class RadiometryError(EOLabError):
    """An absolute quantity was asked of a product whose radiometric level is unknown."""


class MissingBandError(EOLabError):
    """A scene lacks the band that an index or a mask needs."""


class NoDataError(EOLabError):
    """Nothing valid is left to measure: all nodata, all cloud, or no overlap."""


class LakeError(EOLabError):
    """The lake has no such scene or location, or its files are damaged."""


class WorkspaceError(EOLabError):
    """A path leaves the workspace, or is not there."""


class ToolError(EOLabError):
    """A tool call cannot be carried out; the message is written for the caller, often a model."""


class TaskError(EOLabError):
    """A task file or a task id cannot be used."""


class RunError(EOLabError):
    """A run cannot be started, resumed or read."""
