import tarfile

NAMES = "{{NAMES}}".split()


def test_the_archive_holds_the_files():
    with tarfile.open("/app/{{ARCHIVE}}.tar.gz", "r:gz") as archive:
        found = {name.removeprefix("./"): archive.extractfile(name).read().decode() for name in archive.getnames() if archive.getmember(name).isfile()}
    assert found == {name: f"text of {name}\n" for name in NAMES if name.endswith(".{{ENDING}}")}
