"""The compiler of kernels: where it is found, and what it is asked for; what it compiles is tested on GPUs."""

from types import SimpleNamespace

import pytest

from ell12.backend import compiled_code as nvrtc


class Compiler:
    """Stands in for the library: knows some GPUs, and answers with what it was asked for."""

    def __init__(self, *known, fails=False):
        self.known, self.fails, self.asked, self.open = known, fails, "", 0

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, name):
        return getattr(Compiler, f"_{name.removeprefix('nvrtc')}").__get__(self)

    def _GetNumSupportedArchs(self, count):
        count._obj.value = len(self.known)
        return 0

    def _GetSupportedArchs(self, numbers):
        numbers[:] = self.known
        return 0

    def _CreateProgram(self, program, text, *_):
        self.open += 1
        return 0

    def _DestroyProgram(self, program):
        self.open -= 1
        return 0

    def _CompileProgram(self, program, count, options):
        self.asked = options[0].decode()
        return 6 if self.fails else 0

    def _size(self, program, size):
        size._obj.value = 4
        return 0

    def _GetCUBIN(self, program, code):
        code.value = b"bin"
        return 0

    def _GetPTX(self, program, code):
        code.value = b"ptx"
        return 0

    _GetCUBINSize = _GetPTXSize = _size


def test_a_compiler_makes_code_for_the_gpu_or_for_the_newest_it_knows(monkeypatch):
    exact, older, broken = Compiler(80, 90, 100), Compiler(75, 86), Compiler(90, fails=True)
    monkeypatch.setattr(nvrtc, "libraries", lambda: (broken, exact, older))
    assert list(nvrtc.machine_code("source", 90)) == [b"bin\0", b"ptx\0"]
    assert exact.asked == "--gpu-architecture=sm_90"
    assert older.asked == "--gpu-architecture=compute_86"
    assert [compiler.open for compiler in (broken, exact, older)] == [0, 0, 0]


@pytest.mark.skipif(nvrtc.os.name == "nt", reason="names of files are those of Linux")
def test_files_are_found_in_packages_then_in_torch_then_in_an_installation(monkeypatch, tmp_path):
    names = (
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "cuda/lib64/libnvrtc.so.12.4",
    )
    for name in (
        *names,
        "torch/lib/libnvrtc.so.12",
        "nvidia/cu13/lib/libnvrtc.alt.so.13",
        "cuda/lib64/libcudart.so",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def find_spec(package):
        return SimpleNamespace(submodule_search_locations=[str(tmp_path / package)])

    monkeypatch.setattr(nvrtc.importlib.util, "find_spec", find_spec)
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "cuda"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    found = [str(file.relative_to(tmp_path)) for file in nvrtc._files()]
    assert sorted(found[:2]) == sorted(names[:2])
    assert found[2:] == ["torch/lib/libnvrtc.so.12", names[2]]
