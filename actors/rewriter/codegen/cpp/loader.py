"""The few Python functions that a written file carries to build and call its C++.

They are text: a written file stands alone, with torch and a C++ compiler and nothing of kopt.
"""

from __future__ import annotations

IMPORTS = ("ctypes", "hashlib", "os", "subprocess", "tempfile", "torch")
"""What the text below imports."""

_SOURCE = '''\
_CXX_FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno",
              "-fno-trapping-math", "-fno-tree-pre", "-fopenmp", "-shared", "-fPIC"]
_LINK = ["-lmvec", "-lm"]
if os.uname().machine != "x86_64":
    _CXX_FLAGS.remove("-mprefer-vector-width=512")
    _LINK = ["-lm"]


def _load(source, num_pointers):
    """Build C++ (or take it from KOPT_BUILD_DIR if it was built before) and return its function."""
    with open("/proc/cpuinfo") as file:  # -march=native: another CPU needs another build
        cpu = next((line for line in file if line.startswith(("flags", "Features"))), "")
    key = hashlib.sha256("\\0".join([source, *_CXX_FLAGS, cpu]).encode()).hexdigest()
    folder = os.environ.get("KOPT_BUILD_DIR")
    if not folder:
        folder = os.path.join(tempfile.gettempdir(), f"kopt-build-{os.getuid()}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.stat(folder).st_uid != os.getuid():
            raise RuntimeError(f"{folder} belongs to another user; set KOPT_BUILD_DIR")
    library = os.path.join(folder, key + ".so")
    if not os.path.exists(library):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            code, built = os.path.join(scratch, "kernel.cpp"), os.path.join(scratch, "kernel.so")
            with open(code, "w") as file:
                file.write(source)
            compiler = os.environ.get("CXX", "g++")
            done = subprocess.run([compiler, *_CXX_FLAGS, code, "-o", built, *_LINK],
                                  capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError("the C++ kernel did not compile: " + done.stderr[-2000:])
            os.replace(built, library)
    function = ctypes.CDLL(library).run
    function.argtypes = [ctypes.c_void_p] * num_pointers + [ctypes.c_int]
    function.restype = None
    return function


_libc = ctypes.CDLL(None)
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def _empty(shape, dtype):
    """Allocate a result; a large one on huge pages, which fault in 512 times less often."""
    made = torch.empty(shape, dtype=dtype)
    size = made.numel() * made.element_size()
    if size >= 1 << 23:
        start = (made.data_ptr() + 4095) & ~4095
        _libc.madvise(start, made.data_ptr() + size - start & ~4095, 14)  # 14: MADV_HUGEPAGE
    return made


def _dense(x, shape, dtype):
    """Return x in row-major order; the kernel reads it by address, so shape and dtype must fit."""
    if x.shape != shape or x.dtype != dtype or x.device.type != "cpu":
        raise ValueError(f"expected {dtype} of shape {tuple(shape)} on cpu, "
                         f"found {x.dtype} of shape {tuple(x.shape)} on {x.device}")
    return x.contiguous()
'''


def cpp_loader_source() -> str:
    """Return the module-level Python that every file with C++ kernels needs once."""
    return _SOURCE
