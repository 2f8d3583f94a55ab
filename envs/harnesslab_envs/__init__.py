"""The environments that come with harnesslab, one folder each; found by entry point, never imported by name."""
