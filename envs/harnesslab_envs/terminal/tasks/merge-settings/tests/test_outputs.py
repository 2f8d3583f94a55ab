import json
from pathlib import Path


def test_merged():
    assert json.loads(Path("/app/merged.json").read_text()) == json.loads('''{{MERGED}}''')


def test_the_sources_were_left_alone():
    assert json.loads(Path("/app/base.json").read_text()) == json.loads('''{{BASE}}''')
    assert json.loads(Path("/app/{{NAME}}.json").read_text()) == json.loads('''{{OVER}}''')
