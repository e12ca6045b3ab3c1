"""A process with everything imported, which forks a child for each case: milliseconds, not seconds.

Run as ``python -m support.forker MODULE ...``; imports the modules, then reads cases from standard
input, one JSON object a line (the fields of :class:`support.isolated.Case` and where things go),
and answers on standard output: ``{"id", "pid"}`` when a child has begun, and when it has ended
``{"id", "code", "signal", "seconds", "cpu_seconds", "memory_bytes"}``. Seconds in which others had
the processor do not count. Children run in a process group of their own, so that whoever asked may
kill all of one.
"""

import contextlib
import importlib
import json
import os
import resource
import selectors
import signal
import sys
import tempfile
import time
import traceback
from typing import Any

Case = dict[str, Any]

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


class Forker:
    """The loop: cases come, children end."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[Any, float]] = {}
        self.selector = selectors.DefaultSelector()
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer)
        self.selector.register(0, selectors.EVENT_READ)
        self.selector.register(reader, selectors.EVENT_READ)

    def serve(self) -> None:
        """Until standard input ends; children that still run are killed then."""
        rest = b""
        while True:
            for key, _ in self.selector.select():
                if key.fd != 0:
                    os.read(key.fd, 4096)
                    continue
                content = os.read(0, 1 << 16)
                if not content:
                    for pid in self.running:
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(pid, signal.SIGKILL)
                    return
                *lines, rest = (rest + content).split(b"\n")
                for line in lines:
                    self.start(json.loads(line))
            self.reap()

    def start(self, case: Case) -> None:
        """Fork a child for a case."""
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.selector.close()
            _child(case)
        with contextlib.suppress(OSError):  # the child does it too; whoever comes first
            os.setpgid(pid, pid)
        self.running[pid] = case["id"], started
        _say({"id": case["id"], "pid": pid})

    def reap(self) -> None:
        """Tell of children that have ended."""
        while self.running:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return
            waited = waited_for_processor(ended.si_pid)
            pid, status, usage = os.wait4(ended.si_pid, 0)
            if pid not in self.running:
                continue
            number, started = self.running.pop(pid)
            _say({
                "id": number,
                "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                "seconds": time.monotonic() - started - waited,
                "cpu_seconds": usage.ru_utime + usage.ru_stime,
                "memory_bytes": usage.ru_maxrss * 1024,
            })  # fmt: skip


def waited_for_processor(pid: int) -> float:
    """Seconds in which a process was ready and others ran; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _say(value: Any) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


def _child(case: Case) -> None:
    """Carry a case out in this process, which ends with it."""
    code: object = 70
    try:
        os.setpgid(0, 0)
        _redirect(case)
        os.chdir(case["cwd"])
        sys.path.insert(0, case["cwd"])  # as `python -m` and notebooks have it: the worst case
        sys.argv = ["bench"]
        os.environ.clear()
        os.environ.update(case["env"])
        tempfile.tempdir = None  # the parent's
        _limit(case["memory_bytes"])
        sys.addaudithook(_Audit(case["audit"], case["allowed"]))
        module, _, name = case["call"].partition(":")
        try:
            code = getattr(importlib.import_module(module), name)(*case["args"])
        except SystemExit as end:
            code = end.code
        except BaseException:  # as the interpreter would show it
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _redirect(case: Case) -> None:
    for number, name in ((0, os.devnull), (1, case["out"]), (2, case["err"])):
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


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    for each in sys.argv[1:]:
        importlib.import_module(each)
    # Standard output is for answers; whatever a module prints goes to standard error.
    # A timer of matplotlib's, which lists the fonts, ends a moment after it was cancelled.
    deadline = time.monotonic() + 10
    while (threads := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    _say({"id": -1, "threads": threads})
    Forker().serve()
