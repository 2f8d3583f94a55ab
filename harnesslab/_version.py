"""The one place that holds the version; the extension's package.json must agree (a test checks)."""

__version__ = "0.1.0"
