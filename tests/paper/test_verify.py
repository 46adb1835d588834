"""`verify` finds what is wrong with a run, and nothing wrong with a sound one."""

import json
import zipfile

import pytest

from ell12_paper import provenance
from ell12_paper.rows import FILE, make_row, read_rows, rewrite_rows
from ell12_paper.trial_runs import RunError, Wish, run
from ell12_paper.verify import compare, verify

WISH = Wish(names=["compressed-sensing"], repeats=1, only=["i=0", "method=DCA,SCP", "setup=stated"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    run(WISH, folder)
    return folder


@pytest.fixture
def copy(sound, tmp_path):
    for path in sound.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def change(folder, edit, sealed=True):
    """Edit the rows, with checks and hashes as if nothing had happened."""
    rows = [edit(row) for row in read_rows(folder)[0]]
    fields = ("experiment", "settings", "results", "environment")
    rewrite_rows(folder, [make_row(*(row[field] for field in fields)) for row in rows])
    if sealed:
        provenance.seal(folder)


def with_results(row, **changed):
    return row | {"results": row["results"] | changed}


def test_a_sound_run_is_sound_also_as_an_archive(sound, tmp_path):
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as archive:
        for path in sound.iterdir():
            archive.write(path, f"run/{path.name}")
    for source in (sound, tmp_path / "run.zip"):
        lines, fine = verify(source)
        assert fine, lines
        assert "2 trials measured again, 2 to the last digit" in "\n".join(lines)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda row: with_results(row, rmse=2 * row["results"]["rmse"]), "rmse is"),
        (lambda row: row | {"settings": row["settings"] | {"alpha": 0.5}}, "belong to no trial"),
        (lambda row: with_results(row, cpu_seconds=100.0 ** (row["settings"]["method"] == "DCA")), "time over"),
    ],
)
def test_forged_rows_are_found_by_measuring_again(copy, edit, words):
    change(copy, edit)
    lines, fine = verify(copy)
    assert not fine
    assert any(words in line for line in lines if line.startswith("WRONG"))


def test_what_the_hash_the_check_the_plan_and_the_pictures_find(copy):
    change(copy, lambda row: row | {"environment": {}}, sealed=False)
    assert "is not the file that the run wrote" in "".join(verify(copy, 0)[0])
    content = (copy / FILE).read_bytes()
    (copy / FILE).write_bytes(content[:-5])
    found = "".join(verify(copy, 0)[0])
    assert "is damaged" in found
    assert "1 trials that were asked for have no row" in found
    known = json.loads((copy / provenance.FILE).read_text())
    known["runs"][0]["images"] = ["testimage"]
    (copy / provenance.FILE).write_text(json.dumps(known))
    assert "testimage, are not here: give their folder by --images" in "".join(verify(copy, 0)[0])
    (copy / provenance.FILE).write_text(json.dumps({"runs": []}))
    assert "missing or damaged" in "".join(verify(copy, 0)[0])
    (copy / FILE).write_text("")
    with pytest.raises(RunError, match="no sound row"):
        verify(copy)
    with pytest.raises(RunError, match="no zip file"):
        verify(copy / FILE)


@pytest.mark.parametrize(
    ("there", "here", "differing"),
    [
        ({"rmse": 0.5}, {"rmse": 0.51}, 0),
        ({"rmse": 0.5}, {"rmse": 0.6}, 1),
        ({"objective": 1.0}, {"objective": 1.001}, 1),
        ({"n_nonzero": 100}, {"n_nonzero": 104}, 0),
        ({"n_nonzero": 100}, {"n_nonzero": 120}, 1),
        ({"rmse": 0.5, "n_iter": 10}, {"rmse": 0.5 + 1e-12, "n_iter": 40}, 0),
        ({"rmse": 0.5, "n_iter": 10}, {"rmse": 0.5, "n_iter": 40}, 1),
        ({"rmse": 0.5}, {}, 1),
        ({"rmse": 0.5, "first_share": 0.9}, {"rmse": 0.5}, 0),
        ({"values": [1.0, 2.0]}, {"values": [1.0, 2.0, 3.0]}, 1),
    ],
)
def test_what_counts_as_rounding(there, here, differing):
    assert len(compare(there, here).differing) == differing
