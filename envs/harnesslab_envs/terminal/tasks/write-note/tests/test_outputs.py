from pathlib import Path


def test_the_file_holds_the_two_lines():
    assert Path("/app/{{FILE}}").read_text().rstrip("\n") == "{{FIRST}}\n{{SECOND}}"


def test_there_is_no_other_file():
    assert [file.name for file in Path("/app").iterdir()] == ["{{FILE}}"]
