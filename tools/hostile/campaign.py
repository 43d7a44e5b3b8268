"""A campaign of hostile cases, each in a child with limits, with a one-file reproducer for what fails.

An attack is a module of this folder with `ATTACK = Attack(cases, ...)`. Its `cases` is an endless generator of `Case`s
from a seeded `random.Random`, and from nothing else: the same seed must make the same cases. A case is Python source
and the files it finds in its working directory, so that a reproducer is the case itself. Cases that end without an
exception are accepted, those that raise what the attack calls documented are refused, all others fail.

The parent has imported the library and forks a child for each batch of cases. The child tells in shared memory which
case it is at, and limits its own memory and time; whatever ends it, the parent knows the case, and goes on after it.
"""

import base64
import ctypes
import faulthandler
import importlib
import mmap
import os
import pkgutil
import re
import resource
import selectors
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TypeVar

BATCH = 5000  # cases that are made from one seed: as many as a slice of the fastest attacks takes
SLICE = 4.0  # seconds of one child, so that fast and slow attacks have the same share of the time
_MEGABYTE = 1 << 20
_LEAK = 256 * _MEGABYTE  # what a child may keep from all of its cases
_PROGRESS = struct.Struct("4q")  # the case at hand, and how many were begun, refused and accepted
_FAILED, _LEAKED, _BROKEN = 3, 4, 5  # exit statuses of a child
_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where files are, which are many and synced
_libc = ctypes.CDLL(None)
_Made = TypeVar("_Made")

_REPRODUCER = '''"""{title}"""
import base64, os, resource, signal, tempfile

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1", MALLOC_ARENA_MAX="1")
FILES = {files}
os.chdir(tempfile.mkdtemp())
for name, content in FILES.items():
    with open(name, "wb") as file:
        file.write(base64.b64decode(content))

# Before the limits: imports and threads that every case has.
{warm_up}

with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {memory}, resource.RLIM_INFINITY))
signal.setitimer(signal.ITIMER_REAL, {seconds})

{script}
'''


@dataclass(frozen=True)
class Case:
    """Python source to run, and the files that it finds in its working directory."""

    script: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    memory: int = 0  # in bytes, that it may take besides what every case may


@dataclass(frozen=True)
class Attack:
    """How cases are made, and what they may do."""

    cases: Callable[[Random], Iterator[Case]]
    is_documented: Callable[[BaseException], bool] = lambda error: False  # which exceptions are a refusal
    warm_up: str = "import larank"  # source that is run once, before all cases and without limits; it leaves no threads
    megabytes: int = 64  # that a case may add to the memory of its process,
    times_files: int = 4  # and how many times the size of its files it may add besides
    seconds: float = 60  # that a case may take

    def memory(self, case: Case) -> int:
        """How many bytes a case may add to the memory of its process."""
        of_files = self.times_files * sum(map(len, case.files.values()))
        return self.megabytes * _MEGABYTE + of_files + case.memory


_SECONDS_OF_AN_ATTACK = 280  # in the gate, whose tests have 300


@dataclass
class Tally:
    """What became of the cases of an attack."""

    cases: int = 0
    refused: int = 0
    accepted: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass
class Batch:
    """Cases from one seed; those before `start` are done. With `pid` it is at work in a child."""

    attack: str
    number: int
    size: int
    start: int = 0
    pid: int = 0
    log: Path = Path()
    began: float = 0.0
    progress: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, _PROGRESS.size))


def registered() -> dict[str, Attack]:
    """The attacks by name: all modules of this folder that have one."""
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    modules = {name: importlib.import_module(f"{__package__}.{name}") for name in sorted({*names} - {"__main__"})}
    return {name: module.ATTACK for name, module in modules.items() if hasattr(module, "ATTACK")}


def made_apart(make: Callable[[], _Made]) -> _Made:
    """Return what a function makes in a forked process: threads must not run in this one before its other forks."""
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        return pool.submit(make).result()


def hold(cases: Mapping[str, int]) -> None:
    """Assert that these attacks find nothing in so many cases each; in a process in which no thread runs yet."""
    chosen = [f"--attack={name}:{number}" for name, number in cases.items()]
    command = [sys.executable, "-m", "tools.hostile", *chosen, "--workers", "1"]
    root = Path(__file__).parents[2]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, cwd=root, start_new_session=True, **pipes) as process:
        try:
            output, _ = process.communicate(timeout=_SECONDS_OF_AN_ATTACK)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # its children too
            raise
    assert process.returncode == 0, output


class Campaign:
    """Runs attacks until the time is up, or each has had so many cases.

    `failures` has the title, the report and the reproducer's path for each failure that is unlike those before it.
    """

    def __init__(
        self,
        attacks: Mapping[str, Attack],
        directory: Path,
        seed: int = 0,
        seconds: float = float("inf"),
        cases: Mapping[str, int | None] | int | None = None,
        workers: int | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        self.attacks = attacks
        self.directory = directory
        self.seed = seed
        self.deadline = time.monotonic() + seconds
        self.cases = cases if isinstance(cases, Mapping) else dict.fromkeys(attacks, cases)
        self.workers = workers or os.cpu_count() or 1
        self.report = report
        self.tallies = {name: Tally() for name in attacks}
        self.failures: dict[str, Path] = {}

    def run(self) -> bool:
        """Run the cases; True if none failed."""
        numbers = range(self.workers)  # each worker may be at a batch of the same attack
        waiting = deque(batch for number in numbers for name in self.attacks for batch in self._batch(name, number))
        for name, attack in self.attacks.items():  # what cases share is made here and not in every child
            exec(compile(attack.warm_up, "<warm-up>", "exec"), {"__name__": "__main__"})
            next(self._made(Batch(name, 0, 1), 0))
        began = told = time.monotonic()
        with selectors.DefaultSelector() as running, tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder:
            try:
                while True:
                    while waiting and len(running.get_map()) < self.workers and time.monotonic() < self.deadline:
                        batch = waiting.popleft()
                        running.register(self._started(batch, Path(folder)), selectors.EVENT_READ, batch)
                    if not running.get_map():
                        return not self.failures
                    for key, _ in running.select(timeout=10):
                        running.unregister(key.fileobj)
                        os.close(key.fd)
                        batch = key.data
                        goes_on = self._ended(batch)
                        waiting.extend([batch] if goes_on else self._batch(batch.attack, batch.number + self.workers))
                    if time.monotonic() > told + 10:
                        told = time.monotonic()
                        done = "  ".join(f"{name} {tally.cases}" for name, tally in self.tallies.items())
                        self.report(f"{told - began:.0f} s: {done}; {len(self.failures)} failures")
            finally:
                for key in running.get_map().values():
                    os.kill(key.data.pid, signal.SIGKILL)
                    os.waitpid(key.data.pid, 0)

    def table(self) -> str:
        """What became of the cases of each attack, a line each."""
        lines = [f"{'attack':<14}{'cases':>10}{'refused':>10}{'accepted':>10}{'cases/s':>10}  failures"]
        for name, tally in self.tallies.items():
            kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(tally.failures.items())) or "none"
            speed = tally.cases / tally.seconds if tally.seconds else 0
            lines.append(f"{name:<14}{tally.cases:>10}{tally.refused:>10}{tally.accepted:>10}{speed:>10.0f}  {kinds}")
        total = sum(tally.cases for tally in self.tallies.values())
        return "\n".join([*lines, f"{'all':<14}{total:>10}"])

    def _batch(self, name: str, number: int) -> list[Batch]:
        """The batch of this number, if there is one."""
        most = self.cases[name]
        size = BATCH if most is None else min(BATCH, most - number * BATCH)
        return [Batch(name, number, size)] if size > 0 else []

    def _made(self, batch: Batch, start: int) -> Iterator[Case]:
        random = Random(f"{self.seed} {batch.attack} {batch.number}")
        return islice(self.attacks[batch.attack].cases(random), start, batch.size)

    def _started(self, batch: Batch, folder: Path) -> int:
        """Fork a child that works on the batch, and tell its file descriptor."""
        batch.log = Path(tempfile.mkdtemp(dir=folder)) / "log"
        batch.progress[:] = _PROGRESS.pack(batch.start, 0, 0, 0)
        batch.began = time.monotonic()
        end = min(self.deadline, batch.began + SLICE)
        batch.pid = os.fork()
        if not batch.pid:
            status = _BROKEN
            try:
                status = _work(self.attacks[batch.attack], self._made(batch, batch.start), batch, end)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        return os.pidfd_open(batch.pid)

    def _ended(self, batch: Batch) -> bool:
        """Take in what a child did; True if there are cases left in its batch."""
        _, status = os.waitpid(batch.pid, 0)
        current, begun, refused, accepted = _PROGRESS.unpack(batch.progress[:])
        tally = self.tallies[batch.attack]
        tally.cases += begun
        tally.refused += refused
        tally.accepted += accepted
        tally.seconds += time.monotonic() - batch.began
        log = batch.log.read_text(errors="replace") if batch.log.exists() else ""
        shutil.rmtree(batch.log.parent)
        code = os.waitstatus_to_exitcode(status)
        if code or begun > refused + accepted:  # or a case has ended its process as if all were well
            kind = _kind(code, log)
            tally.failures[kind] += 1
            self._fail(batch, current, kind, log, code)
        batch.start = current + 1
        return batch.start < batch.size and code != _BROKEN

    def _fail(self, batch: Batch, number: int, kind: str, log: str, code: int) -> None:
        """Confirm a failure by its reproducer, which must end by the same signal, unless there was one like it."""
        signature = f"{batch.attack}: {kind} {_place(log)}"
        if signature in self.failures:
            return
        title = f"{signature}, seed {self.seed}, batch {batch.number}, case {number}"
        attack, case = self.attacks[batch.attack], next(self._made(batch, number))
        text = reproducer(attack, case, title)
        path = self.directory / f"{batch.attack}-{self.seed}-{batch.number}-{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.failures[signature] = path
        again = subprocess.run([sys.executable, path], capture_output=True, text=True, errors="replace")
        is_same = again.returncode == code if code < 0 else again.returncode != 0
        confirmed = "confirmed" if is_same else "NOT confirmed alone: it needs the cases before it"
        shown = text if len(text) < 8000 else f"{text[:4000]}\n... (see the file)\n{text[-2000:]}"
        self.report(
            f"\n{title}\n{log[-4000:]}\n{confirmed}; the reproducer is {path}:\n\n{shown}\n{again.stderr[-2000:]}"
        )


def reproducer(attack: Attack, case: Case, title: str) -> str:
    """A script that does what the case does, under the same limits, with nothing but the library."""
    files = {name: base64.b64encode(content).decode() for name, content in case.files.items()}
    return _REPRODUCER.format(
        title=title.replace("\\", "/").replace('"', "'"),
        files=files,
        warm_up=attack.warm_up,
        memory=attack.memory(case),
        seconds=attack.seconds,
        script=case.script,
    )


def _kind(status: int, log: str) -> str:
    if status == -signal.SIGALRM:
        return "hang"
    if status == _FAILED:
        return "memory" if re.search(r"^MemoryError", log, re.MULTILINE) else "exception"
    return {_LEAKED: "leak", _BROKEN: "broken attack"}.get(status, "crash")


def _place(log: str) -> str:
    """Where a failure was: the innermost Python line, of a traceback or of a crash."""
    places = re.findall(r'File "(?:.*/)?([^"]+)", line (\d+)', log)
    error = re.findall(r"^(\w+(?:\.\w+)*(?:Error|Exception|Exit|Interrupt))\b", log, re.MULTILINE)
    innermost = places[:1] if "most recent call first" in log else places[-1:]
    return " ".join([*error[-1:], *(":".join(place) for place in innermost)])


# ---- In the child ----


def _work(attack: Attack, cases: Iterator[Case], batch: Batch, end: float) -> int:
    """Run cases one after the other until one fails or the time is up."""
    _redirect(batch.log)
    room = batch.log.parent / "room"
    room.mkdir()
    os.chdir(room)
    first = _memory_in_use()[1]
    refused = accepted = 0
    for done, case in enumerate(cases):
        batch.progress[:] = _PROGRESS.pack(batch.start + done, done + 1, refused, accepted)
        for name, content in case.files.items():
            Path(name).write_bytes(content)
        try:
            with _limits(attack.memory(case), attack.seconds):
                exec(_compiled(case.script), {"__name__": "__main__"})
            accepted += 1
        except BaseException as error:
            if not attack.is_documented(error):
                traceback.print_exc()
                return _FAILED
            refused += 1
        batch.progress[:] = _PROGRESS.pack(batch.start + done, done + 1, refused, accepted)
        _sweep(room)
        if _memory_in_use()[1] > first + _LEAK:
            return _LEAKED
        if time.monotonic() > end:
            break
    return 0


@contextmanager
def _limits(memory: int, seconds: float) -> Iterator[None]:
    """Within it, the process ends after so many seconds, and gets no more than so many bytes over what it has now."""
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which has terabytes of addresses for itself
        resource.setrlimit(resource.RLIMIT_AS, (_memory_in_use()[0] + memory, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _redirect(log: Path) -> None:
    """Send all output to a file, that of a crash or hang too."""
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout = sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    faulthandler.enable(file=2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, file=2, chain=True)


def _sweep(room: Path) -> None:
    """Leave nothing to the next case: no file, and no output, which would grow without bound."""
    os.chdir(room)
    for entry in os.scandir(room):
        shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
    os.ftruncate(2, 0)


def _memory_in_use() -> list[int]:
    """Return the bytes of the address space, of resident memory and of its parts, without what is free."""
    _libc.malloc_trim(0)  # free memory of the parent and of earlier cases would count, and later cases could use it
    return [int(pages) * resource.getpagesize() for pages in Path("/proc/self/statm").read_text().split()]


@lru_cache(1000)
def _compiled(script: str) -> object:
    return compile(script, "<case>", "exec")
