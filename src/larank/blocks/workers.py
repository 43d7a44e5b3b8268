"""Threads for independent pieces of work that call BLAS."""

from __future__ import annotations

import multiprocessing
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from larank import _core
from larank.blocks.pages import zeros

_Result = TypeVar("_Result")
_BACKGROUND = "larank-background"
_NOTHING = object()
_MODULES = tuple(suffix for suffix in EXTENSION_SUFFIXES if suffix != ".so")  # how paths of Python modules end
_PATIENCE = 0.0001  # seconds between two looks at what could be helped with


class Workers:
    """Threads for tiles: the calling one and, while a block is entered, a pool of others."""

    def __init__(self, n_jobs: int | None) -> None:
        if n_jobs is not None and (isinstance(n_jobs, bool) or int(n_jobs) != n_jobs or n_jobs == 0):
            raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
        # A worker process has one thread, as in joblib, which would warn that loky cannot start processes there.
        self.count = 1 if multiprocessing.current_process().daemon else int(effective_n_jobs(n_jobs))
        self.lock = threading.Lock()
        self._own = threading.local()
        self._depth = 0
        self._pool: ThreadPoolExecutor | None = None
        self._behind: ThreadPoolExecutor | None = None
        self._jobs: list[_Job] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Workers, (self.count,)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Keep the pool and the limit on BLAS threads; nested and concurrent blocks share them."""
        with self.lock:
            self._depth += 1
            if self._depth == 1:
                _one_blas_thread.enter()
                if self.count > 1:
                    self._pool = ThreadPoolExecutor(self.count - 1, "larank", _one_blas_thread.limit)
        try:
            yield
        finally:
            with self.lock:
                self._depth -= 1
                last = self._depth == 0
                pools = (self._behind, self._pool)
                if last:
                    self._behind = self._pool = None
            if last:
                for pool in pools:
                    if pool is not None:
                        pool.shutdown()
                _one_blas_thread.leave()

    def run(self, work: Callable[[Any], None], tasks: Sequence[Any]) -> None:
        """Do all tasks, each in some thread."""
        job = _Job(work, tasks)
        # A call from the background leaves a thread to the one that is busy with something else.
        helpers = self.count - (2 if self._is_background() else 1)
        with self.entered():
            self._jobs.append(job)
            try:
                if self._pool is not None:
                    for _ in range(min(helpers, len(tasks) - 1)):
                        if submitted(self._pool, job.drain) is None:
                            break  # the calling thread does it alone
                job.drain()
            finally:
                self._jobs.remove(job)
                job.finish()

    def background(self, function: Callable[[], _Result]) -> Background[_Result]:
        """Call a function in a thread of its own, while the calling thread does something else."""
        if self._behind is None:
            self._behind = ThreadPoolExecutor(1, _BACKGROUND, _one_blas_thread.limit)
        future = submitted(self._behind, function)
        if future is None:
            self._behind.shutdown(wait=False, cancel_futures=True)  # or a thread to come would call it again
            self._behind = None
            future = done(function)
        return Background(self, future)

    def scratch(self, rows: int, columns: int, dtype: Any) -> NDArray[Any]:
        """Memory of the calling thread, which is slow to get new and overwritten by its next call."""
        if len(getattr(self._own, "values", ())) < rows * columns or self._own.values.dtype != dtype:
            self._own.values = np.empty(0, dtype)  # not both at once
            self._own.values = zeros(rows * columns * 5 // 4, dtype)
        values: NDArray[Any] = self._own.values[: rows * columns].reshape(rows, columns)
        return values

    def assist(self) -> None:
        """Take part in whatever is being run."""
        for job in tuple(self._jobs):
            job.drain()

    @staticmethod
    def _is_background() -> bool:
        return threading.current_thread().name.startswith(_BACKGROUND)


def submitted(pool: ThreadPoolExecutor, function: Callable[[], _Result]) -> Future[_Result] | None:
    """Let a thread of the pool call a function; None where no thread can be started, for lack of memory."""
    try:
        return pool.submit(function)
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        return None


def done(function: Callable[[], _Result]) -> Future[_Result]:
    """What the function returns or raises, in the calling thread."""
    future: Future[_Result] = Future()
    try:
        future.set_result(function())
    except Exception as error:
        future.set_exception(error)
    return future


class Background(Generic[_Result]):
    """Something that runs in the background; who waits for it takes part in its work."""

    def __init__(self, workers: Workers, future: Future[_Result]) -> None:
        self._workers, self._future = workers, future

    def wait(self) -> None:
        """Return when it is over, whatever came of it."""
        while not self._future.done():
            self._workers.assist()
            wait([self._future], timeout=_PATIENCE)

    def result(self) -> _Result:
        """What it returned."""
        self.wait()
        return self._future.result()


class _Job:
    """Tasks that several threads take from."""

    def __init__(self, work: Callable[[Any], None], tasks: Sequence[Any]) -> None:
        self._work = work
        self._waiting = deque(tasks)
        self._left = len(tasks)
        self._changed = threading.Condition()
        self._error: BaseException | None = None

    def drain(self) -> None:
        """Do tasks until none is waiting."""
        while (task := self._take()) is not _NOTHING:
            error: BaseException | None = None
            try:
                self._work(task)
            except BaseException as raised:  # it belongs to the thread that waits for the job
                error = raised
            with self._changed:
                self._left -= 1
                if error is not None:
                    self._error = self._error or error
                    self._left -= len(self._waiting)
                    self._waiting.clear()
                self._changed.notify_all()

    def _take(self) -> Any:
        with self._changed:
            return self._waiting.popleft() if self._waiting else _NOTHING

    def finish(self) -> None:
        """Wait for the tasks that others have taken; raise what one of them raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._left <= 0)
        if self._error is not None:
            raise self._error


class _OneBlasThread:
    """The process-wide limit on BLAS threads, shared by all who ask for it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._limiter: Any = None

    def limit(self) -> Any:
        """Set the limit, from a worker too: some libraries keep it per thread."""
        return _threadpools().limit(limits=1, user_api="blas")

    def enter(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._limiter = self.limit()

    def leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._limiter.restore_original_limits()


_one_blas_thread = _OneBlasThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A block whose linear algebra is done by the calling thread alone."""
    _one_blas_thread.enter()
    try:
        yield
    finally:
        _one_blas_thread.leave()


def blas_threads() -> int:
    """How many threads the linear algebra library uses."""
    return max((library.num_threads for library in _threadpools().select(user_api="blas").lib_controllers), default=1)


class _Threadpools(ThreadpoolController):  # type: ignore[misc]
    """The thread pools of all libraries.

    Python modules, of which there may be hundreds, have none; to follow the links of all their paths takes some 10 ms.
    """

    def _load_libraries(self) -> None:
        libraries = [path for path in _core.loaded_libraries() if not path.endswith(_MODULES)]
        if not libraries:
            super()._load_libraries()
        for path in libraries:
            self._make_controller_from_path(path)


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    return _Threadpools()
