"""Threads for independent pieces of work that call BLAS."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

__all__ = ["Workers"]


class Workers:
    """Threads for tiles: the calling one and, while a block is entered, a pool of others."""

    def __init__(self, n_jobs: int | None) -> None:
        if n_jobs is not None and (isinstance(n_jobs, bool) or int(n_jobs) != n_jobs or n_jobs == 0):
            raise ValueError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
        self.count = int(effective_n_jobs(n_jobs))
        self.lock = threading.Lock()
        self._depth = 0
        self._pool: ThreadPoolExecutor | None = None

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
                pool, last = self._pool, self._depth == 0
                if last:
                    self._pool = None
            if last:
                if pool is not None:
                    pool.shutdown()
                _one_blas_thread.leave()

    def run(self, work: Callable[[Any], None], tasks: Sequence[Any]) -> None:
        """Do all tasks, each in some thread."""
        waiting = deque(tasks)

        def drain() -> None:
            while waiting:
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                work(task)

        with self.entered():
            others: list[Future[None]] = []
            try:
                if self._pool is not None:
                    others = [self._pool.submit(drain) for _ in range(min(self.count, len(tasks)) - 1)]
                drain()
            finally:
                waiting.clear()
                wait(others)
            for other in others:
                other.result()


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


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()
