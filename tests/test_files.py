import os

import pytest

from ell12.files import write_atomically


def test_a_failed_rewrite_leaves_the_old_file_alone(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")

    def fail(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        write_atomically(tmp_path / "a", b"new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]
