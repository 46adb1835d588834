"""Archives: the same bytes for the same files, and nothing that an evil one could do."""

import hashlib
import io
import json
import zipfile

import pytest

from ell12.commands import CommandError
from ell12_paper import archive, provenance, report
from ell12_paper.archive import check_target, opened, pack
from ell12_paper.rows import FILE, make_row, rewrite_rows


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    rewrite_rows(folder, [make_row("prox", {"d": d}, {"value": 1.0}, {}) for d in range(200)])
    (folder / "run.json").write_text("{}")
    (folder / "private.txt").write_text("not part of the run")
    return folder


def test_the_same_files_give_the_same_bytes_and_come_back(folder, tmp_path):
    pack(folder, tmp_path / "a.zip")
    (folder / "run.json").touch()
    pack(folder, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert (tmp_path / "a.zip").stat().st_size < (folder / FILE).stat().st_size / 5
    with opened(tmp_path / "a.zip") as found:
        assert sorted(path.name for path in found.iterdir()) == [FILE, "run.json"]
        assert (found / FILE).read_bytes() == (folder / FILE).read_bytes()
    assert not found.exists()
    with opened(folder) as found:
        assert found == folder


def zipped(*entries, damage=lambda content: content):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in entries:
            file.writestr(zipfile.ZipInfo(name), text)
    return damage(content.getvalue())


ROWS = (f"ell12-run/{FILE}", b"{}\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (zipped(ROWS, ("../evil", b"")), r"would write to \.\./evil"),
        (zipped(ROWS, ("/etc/evil", b"")), "would write to /etc/evil"),
        (zipped(ROWS, ("a\\..\\..\\evil", b"")), "would write to"),
        (zipped(ROWS, ("C:evil", b"")), "would write to"),
        (zipped(ROWS, (FILE, b"")), "twice"),
        (zipped(("other/" + FILE, b"")), "holds no rows.jsonl"),
        (zipped(ROWS, damage=lambda content: content[:60]), "no zip archive, or a damaged one"),
        (
            zipped(ROWS, damage=lambda content: content.replace(b"{}\n", b"{,\n")),
            "no zip archive, or a damaged one",
        ),
        (b"no archive", "no zip archive"),
    ],
)
def test_an_archive_that_we_did_not_write_is_refused_in_one_line(tmp_path, content, words):
    (tmp_path / "run.zip").write_bytes(content)
    with pytest.raises(CommandError, match=words) as raised, opened(tmp_path / "run.zip"):
        pass
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["run.zip"]


def test_an_archive_that_grows_without_end_is_refused(tmp_path, monkeypatch):
    (tmp_path / "run.zip").write_bytes(zipped((FILE, b"0" * 5000)))
    monkeypatch.setattr(archive, "MOST_BYTES", 4999)
    with pytest.raises(CommandError, match="holds more than"), opened(tmp_path / "run.zip"):
        pass
    # One that lies about its size is read no further than it says.
    lying = zipped((FILE, b"0" * 5000)).replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    (tmp_path / "run.zip").write_bytes(lying)
    with pytest.raises(CommandError, match="damaged"), opened(tmp_path / "run.zip"):
        pass


def test_a_target_is_checked_before_the_run(folder, tmp_path):
    check_target(None)
    check_target(tmp_path / "new.zip")
    pack(folder, tmp_path / "old.zip")
    check_target(tmp_path / "old.zip")
    (tmp_path / "photos.zip").write_bytes(zipped(("photo.png", b"")))
    cases = {
        "run.tar": "unknown suffix",
        "none/run.zip": "there is no folder",
        "photos.zip": "no archive of a run",
    }
    for name, words in cases.items():
        with pytest.raises(CommandError, match=words):
            check_target(tmp_path / name)


# Provenance


def test_provenance_tells_everything_but_who_and_where(folder):
    provenance.begin(folder, ["prox"], "quick", 3, 2, None, 0, ["d=10,100"])
    assert not provenance.is_sealed(folder)
    provenance.seal(folder, provenance.MEASURED)
    assert provenance.is_sealed(folder)
    known = json.loads((folder / provenance.FILE).read_text())
    (run,) = known["runs"]
    assert run["command"] == "ell12-paper run prox --preset quick --seed 3 --jobs 2 --only d=10,100"
    assert run["machine"].keys() == {"processor", "architecture", "cores", "memory_gb", "system"}
    assert {"python", "ell12", "numpy", "scipy", "blas"} <= run["versions"].keys()
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in provenance.MEASURED}
    assert {name: entry["sha256"] for name, entry in known["files"].items()} == hashes
    import getpass
    import platform

    text = (folder / provenance.FILE).read_text()
    for private in (f'"{platform.node()}', f'"{getpass.getuser()}', str(folder), "/home", "/tmp", "/root"):
        assert private not in text


def test_a_run_that_goes_on_keeps_what_was_before_it(folder):
    provenance.begin(folder, [], "quick", 0, 1, None, 0)
    provenance.seal(folder, provenance.MEASURED)
    provenance.begin(folder, [], "quick", 0, 4, 2, 200)
    known = provenance.read(folder)
    assert [run["rows_before"] for run in known["runs"]] == [0, 200]
    assert not provenance.is_sealed(folder)
    provenance.begin(folder, [], "quick", 0, 1, None, 0)  # somebody has removed the rows
    assert len(provenance.read(folder)["runs"]) == 1


def test_a_folder_without_provenance_gets_none_by_its_page(folder):
    provenance.seal(folder, provenance.PAGE_FILES)
    assert not (folder / provenance.FILE).exists()


def test_the_commit_is_that_of_this_source_alone(monkeypatch):
    provenance.commit.cache_clear()
    answers = {"ls-files": "__init__.py", "rev-parse": "abc", "status": " M cli.py"}
    monkeypatch.setattr(provenance, "_git", lambda folder, word, *rest: answers[word])
    assert provenance.commit() == "abc+"
    provenance.commit.cache_clear()
    monkeypatch.setattr(provenance, "_git", lambda folder, word, *rest: None if word == "ls-files" else "abc")
    assert provenance.commit() is None
    provenance.commit.cache_clear()


def test_provenance_and_archive_know_every_file_of_the_page():
    assert set(provenance.PAGE_FILES) == {report.PAGE, report.TABLE_OF_TRIALS, report.TABLES}
    assert provenance.MEASURED[0] == FILE
