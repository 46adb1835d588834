import io
import os
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from ell12.files import packed_arrays, write_atomically


def test_a_failed_rewrite_leaves_the_old_file_alone(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")

    def fail(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        write_atomically(tmp_path / "a", b"new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_new_files_follow_the_umask_and_old_ones_keep_their_permissions(tmp_path):
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "private", b"")
        os.umask(0o002)
        write_atomically(tmp_path / "shared", b"")
        assert (mode(tmp_path / "private"), mode(tmp_path / "shared")) == (0o600, 0o664)
        write_atomically(tmp_path / "private", b"again")
        assert mode(tmp_path / "private") == 0o600
    finally:
        os.umask(before)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/file")
    for content in (b"first", b"second"):  # the target is not there at first
        write_atomically(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "file").read_bytes() == content
    assert os.listdir(tmp_path / "far") == ["file"]


def test_what_a_killed_process_has_left_is_removed(tmp_path):
    code = (
        "import os, sys, pathlib, ell12.files\n"
        "os.replace = lambda *_: os.kill(os.getpid(), 9)\n"
        "ell12.files.write_atomically(pathlib.Path(sys.argv[1]), b'half')"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], check=False)
    left = os.listdir(tmp_path)
    assert len(left) == 3
    for name in left:
        os.utime(tmp_path / name, (time.time() - 60,) * 2)
    (tmp_path / ".other.0.part").write_text("of another file")
    write_atomically(tmp_path / "file", b"whole")
    assert sorted(os.listdir(tmp_path)) == [".other.0.part", "file"]


@pytest.mark.skipif(os.name == "nt", reason="Windows locks open files by itself")
def test_what_another_process_is_writing_is_left_alone(tmp_path):
    import fcntl

    with (tmp_path / ".file.0.part").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(tmp_path / ".file.0.part", (time.time() - 60,) * 2)
        write_atomically(tmp_path / "file", b"whole")
        assert sorted(os.listdir(tmp_path)) == [".file.0.part", "file"]


def test_long_names_and_odd_letters(tmp_path):
    for name in ("ä" * 120, "[a]*?.npz", "x" * 250):
        write_atomically(tmp_path / name, b"content")
        assert (tmp_path / name).read_bytes() == b"content"
    assert len(os.listdir(tmp_path)) == 3


def test_packed_arrays_hold_nothing_else_and_need_no_pickle():
    content = packed_arrays({"a": np.arange(3), "b": np.array("word")})
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        assert file.files == ["a", "b"]
        assert (file["a"].tolist(), str(file["b"])) == ([0, 1, 2], "word")
    with pytest.raises(ValueError, match="array a holds objects"):
        packed_arrays({"a": np.array([None])})
