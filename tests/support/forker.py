"""The child that carries a case out: its limits, its output in files, an audit of what it does."""

import importlib
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit events that change a path, and which of their arguments are paths.
_CHANGING = {
    "os.rename": (0, 1), "os.remove": (0,), "os.rmdir": (0,), "os.mkdir": (0,), "os.link": (1,),
    "os.symlink": (1,), "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,),
    "shutil.rmtree": (0,),
}  # fmt: skip
# Place of the descriptor of the folder that a path is relative to, for those that may have one.
_FOLDERS = {"os.remove": (1,), "os.rmdir": (1,), "os.mkdir": (2,), "os.rename": (2, 3),
            "os.link": (3,), "os.symlink": (2,), "os.chmod": (2,), "os.chown": (3,),
            "os.utime": (3,), "shutil.rmtree": (1,)}  # fmt: skip
# Those of a name itself: where that is a link, what it leads to stays as it is.
_NAMES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink")
# Those by which data could run something, or reach somebody.
_RUNNING = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pickle.find_class", "socket.connect",
    "socket.bind", "webbrowser.open",
)  # fmt: skip
# What the project runs itself: git and uname, for the commit and the machine in a record.
_OWN = ("git", "uname")
_HARMLESS = ("/dev/null", "/dev/tty", "/dev/full")


def threads_of_the_server() -> None:
    """End with the number of threads of the process that forked this one."""
    os._exit(len(os.listdir(f"/proc/{os.getppid()}/task")))


def waited_for_processor(pid: int) -> float:
    """Seconds in which a process was ready and others ran; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def carry_out(
    call: str, args: tuple[Any, ...], cwd: str, env: dict[str, str], memory: int,
    allowed: list[str], files: dict[str, str],
) -> None:  # fmt: skip
    """Carry a case out in this process, which ends with it.

    Args:
        call: ``module:function``.
        args: Its arguments.
        cwd: Current folder.
        env: The environment, and nothing else of it.
        memory: Bytes that may be mapped beyond those of the server.
        allowed: Folders that may be written into.
        files: Where ``out``, ``err``, ``audit`` and ``usage`` go; seconds in which others had the
            processor do not count.
    """
    started = time.monotonic()
    code: object = 70
    try:
        os.setpgid(0, 0)  # whoever asked may kill all of it
        usage = os.open(files["usage"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        _redirect(files)
        os.chdir(cwd)
        sys.path.insert(0, cwd)  # as `python -m` and notebooks have it: the worst case
        sys.argv = ["bench"]
        os.environ.clear()
        os.environ.update(env)
        tempfile.tempdir = None  # the parent's
        _limit(memory)
        sys.addaudithook(_Audit(files["audit"], allowed))
        module, _, name = call.partition(":")
        try:
            code = getattr(importlib.import_module(module), name)(*args)
        except SystemExit as end:
            code = end.code
        except BaseException:  # as the interpreter would show it
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = time.monotonic() - started - waited_for_processor(os.getpid())
        told = {"seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime,
                "memory_bytes": used.ru_maxrss * 1024}  # fmt: skip
        os.write(usage, json.dumps(told).encode())
    finally:
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _redirect(files: dict[str, str]) -> None:
    for number, name in ((0, os.devnull), (1, files["out"]), (2, files["err"])):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(name, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _limit(memory: int) -> None:
    """Bound what the child may map beyond what is mapped already, and keep no core of it."""
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + memory, mapped + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Audit:
    """Writes down what a process does that data should never make it do."""

    def __init__(self, path: str, allowed: list[str]) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.allowed = [os.path.realpath(folder) for folder in allowed]

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = flags & _WRITING if isinstance(flags, int) else set(mode or "") & set("wax+")
            if writes and not isinstance(path, int):
                self.changes("open", path)
        elif event in _CHANGING:
            folders = _FOLDERS.get(event, (None,))
            for i, place in zip(_CHANGING[event], folders, strict=True):
                self.changes(event, _whole(arguments[i], place and arguments[place]))
        elif event in _RUNNING:
            if event != "pickle.find_class" or not _within("/numba/"):
                self.note("run", event, arguments)
        elif event == "subprocess.Popen":
            words = arguments[1]
            first = words[0] if isinstance(words, list | tuple) and words else words
            if os.path.basename(os.fsdecode(first)) not in _OWN:
                self.note("run", event, words)

    def changes(self, event: str, path: Any) -> None:
        if isinstance(path, int):
            return
        name = os.fsdecode(path)
        if event in _NAMES:
            folder, _, last = name.rstrip(os.sep).rpartition(os.sep)
            name = os.path.join(os.path.realpath(folder or "."), last)
        else:
            name = os.path.realpath(name)
        inside = any(name == each or name.startswith(each + os.sep) for each in self.allowed)
        # Its own peak of memory, and compiled kernels of the project.
        own = name == f"/proc/{os.getpid()}/clear_refs" or "/__pycache__/" in f"{name}/"
        if not inside and not own and name not in _HARMLESS:
            self.note("wrote", event, name)

    def note(self, kind: str, *what: Any) -> None:
        text = " ".join(str(each) for each in what)
        os.write(self.file, f"{kind}: {text!a:.400}\n".encode())


def _within(part: str) -> bool:
    """Tell a call by a package: numba keeps its compiled kernels as pickles of its own."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        frame = frame.f_back
        if part in frame.f_code.co_filename:
            return True
    return False


def _whole(path: Any, folder: Any) -> Any:
    """A path, behind the folder of a descriptor that it is relative to, if there is one."""
    if isinstance(path, int) or not isinstance(folder, int) or folder < 0:
        return path
    return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(path))
