import re
from pathlib import Path

TEXT = """{{ONE}}
{{TWO}}"""


def test_the_addresses():
    wanted = sorted({found.lower() for found in re.findall(r"[\w.-]+@[\w-]+(?:\.[\w-]+)+", TEXT)})
    assert len(wanted) >= 2
    assert Path("/app/addresses.txt").read_text().split("\n") == [*wanted, ""]
