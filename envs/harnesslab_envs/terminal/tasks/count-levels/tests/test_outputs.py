import collections
import json
from pathlib import Path

LOG = """{{LOG}}"""


def test_the_counts_are_right():
    counts = json.loads(Path("/app/levels.json").read_text())
    assert counts == dict(collections.Counter(line.split()[2] for line in LOG.splitlines()))
