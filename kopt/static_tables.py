"""Tables of gate 1: which names and words in a candidate's text are tripwires, which are notes.

Source: exploits §E16 and classes 1-9, 25-31, 57, 58. A path is dotted and has its aliases
resolved (static_names).
"""

from __future__ import annotations

import re

FORBIDDEN_PATHS: dict[str, tuple[str, ...]] = {
    "frames": (
        "sys._getframe",
        "sys._getframemodulename",
        "sys._current_frames",
        "sys.settrace",
        "sys.setprofile",
        "threading.settrace",
        "threading.setprofile",
        "inspect.stack",
        "inspect.currentframe",
        "inspect.trace",
        "inspect.getouterframes",
        "inspect.getinnerframes",
        "traceback.extract_stack",
        "traceback.walk_stack",
    ),
    "gc": ("gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    "memory": ("ctypes.pythonapi", "os.ptrace"),
    "network": (
        "torch.hub.load",
        "torch.hub.load_state_dict_from_url",
        "torch.hub.download_url_to_file",
    ),
    "obfuscation": ("marshal.loads", "pickle.loads"),
}
FRAME_ATTRIBUTES = ("f_back", "f_locals", "f_globals", "tb_frame", "gi_frame", "cr_frame")
NETWORK_MODULES = (
    "socket",
    "urllib.request",
    "urllib3",
    "http.client",
    "http.server",
    "requests",
    "httpx",
    "aiohttp",
    "ftplib",
    "smtplib",
    "telnetlib",
    "paramiko",
    "websockets",
    "xmlrpc",
    "wget",
    "huggingface_hub",
)
REFERENCE_MODULES = ("__main__", "kopt", "kernelbench")
PROTECTED_ROOTS = (
    "torch",
    "triton",
    "time",
    "builtins",
    "os",
    "numpy",
    "math",
    "random",
    "gc",
    "importlib",
    "ctypes",
    "inspect",
    "kopt",
    "kernelbench",
    "threading",
    "subprocess",
    "multiprocessing",
)
"""Attributes of these belong to everyone in the process; setting one is patching."""
SETTINGS = ("backends", "config", "knobs", "_config")
"""…unless the path goes through one of these: options, not functions. Noted."""
SYSTEM_TABLES = ("sys.modules", "sys.meta_path", "sys.path_hooks")
MUTATORS = ("update", "setdefault", "pop", "popitem", "clear", "insert", "append", "__setitem__")
DECODERS = ("base64.", "zlib.", "bz2.", "lzma.", "gzip.", "codecs.", "bytes.fromhex", "marshal.")
LAZY_METHODS = ("__torch_function__", "__torch_dispatch__")

DANGEROUS_TEXT: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "memory",
        re.compile(r"/proc/[^/\s]+/(?:task/[^/\s]+/)?(?:mem|maps|fd|environ)\b|/dev/k?mem\b"),
    ),
    ("memory", re.compile(r"\bLD_PRELOAD\b|\b(?:ptrace|process_vm_readv|process_vm_writev)\b")),
)
DANGEROUS_C: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("memory", re.compile(r"\bmprotect\s*\(|\bRTLD_NEXT\b|\bdl_iterate_phdr\s*\(")),
    ("network", re.compile(r"\bsocket\s*\(\s*(?:AF|PF)_")),
    ("frames", re.compile(r"\bPyEval_GetFrame\b|\bPyThreadState_GetFrame\b|\bPyFrame_\w+")),
    ("gc", re.compile(r"\bPyGC_\w+|\bPyUnstable_GC_\w+")),
)
INSTALL = re.compile(r"^(?:\S*/)?(?:pip3?|conda|uv|curl|wget|git|apt|apt-get)$")

NOTES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("torch_compile", ("torch.compile", "torch.jit.script", "torch.jit.trace")),
    (
        "cuda_graph",
        ("torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables"),
    ),
    ("streams", ("torch.cuda.Stream", "torch.cuda.ExternalStream", "torch.cuda.stream")),
    (
        "threads",
        ("threading.Thread", "concurrent.futures.ThreadPoolExecutor", "_thread.start_new_thread"),
    ),
    (
        "seeds",
        ("torch.manual_seed", "torch.cuda.manual_seed", "torch.set_rng_state", "random.seed"),
    ),
    # Whoever dies is judged by it (a crash); whoever forks is killed with what it forked.
    ("process", ("os._exit", "os.abort", "os.kill", "os.killpg", "os.fork")),
    ("settings", ("torch.set_float32_matmul_precision", "torch.set_default_dtype")),
    ("inspect", ("inspect.getsource", "os.environ", "os.getenv")),
    ("exec", ("exec", "eval", "builtins.exec", "builtins.eval")),
)
C_NOTES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("streams", re.compile(r"\bcudaStreamCreate\w*")),
    ("threads", re.compile(r"\bstd::(?:thread|jthread|async)\b|\bpthread_create\b")),
)
