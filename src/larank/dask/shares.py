"""The shares of the workers: partitions joined to as many shares as there are threads, and what happens to lost ones.

A share lives in the memory of one worker, as the result of a task, and tasks that work on it are pinned to that worker.
They may change it: that is what makes rounds quick, and it is why Dask must never run one of them elsewhere by itself.
If the worker dies, its shares are made again on others, from partitions that Dask computes again, and whoever drives
the rounds puts back what the share had learnt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

import distributed
from dask.delayed import Delayed
from distributed import Client, Future
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from larank.dask.collections import aligned_partitions
from larank.dask.survey import Survey, checked, summary_of

_LOOK = 0.05  # seconds between two looks at limits and Ctrl-C while workers work
_LOOK_AT_WORKERS = 0.25  # and at who of them is alive
_UNEVEN = 1.2  # times its fair share is the most a thread gets because the rows are there already

_Found = TypeVar("_Found")
Waiting = Generator[None, None, _Found]
"""Work of others: every `yield` is room to give up."""


class ClusterError(RuntimeError):
    """Training cannot go on, because workers, data or the scheduler are lost.

    Attributes
    ----------
    model : estimator or None
        The last valid model, an ordinary local one with its certificate; None where there was none yet.
    """

    model: Any = None

    def with_model(self, model: Any) -> ClusterError:
        """The same with the last valid model, and a word on how good it is."""
        told = ClusterError(
            f"{self}; the model of the last round that was proven is kept, its relative duality gap is "
            f"{model.result_.relative_gap:.2g}"
        )
        told.model = model
        return told


class SharesLostError(Exception):
    """Workers have died, and their shares, whose numbers these are, have been made again, from nothing."""

    def __init__(self, lost: Sequence[int]) -> None:
        super().__init__(f"the shares {list(lost)} were lost")
        self.lost = list(lost)


def client_for(client: Client | None) -> Client:
    """The client that was given, or else the one in use."""
    if client is not None and not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client or None, got {type(client).__name__}")
    try:
        found = client or distributed.get_client()
    except ValueError:
        raise ValueError("fit needs a Dask cluster: make a distributed.Client first, or give fit one") from None
    if found.asynchronous:
        raise ValueError("client must be synchronous, got an asynchronous Client")
    return found


class _Worker(NamedTuple):
    address: str
    threads: int


class Partitions:
    """The partitions of a training set, checked on the workers; `survey` is what they hold."""

    def __init__(self, client: Client, X: Any, y: Any, sample_weight: Any) -> None:
        self.client = client
        by_name = aligned_partitions(X=X, y=y, sample_weight=sample_weight)
        self._parts: list[tuple[Delayed, ...]] = list(zip(*by_name.values(), strict=True))
        self._checked: list[Future] | None = self.checked(range(len(self._parts)))
        summaries = client.map(summary_of, self._checked, pure=False)
        self.survey = Survey.of(client.gather(summaries))

    def checked(self, numbers: Sequence[int]) -> list[Future]:
        """Tasks that compute and check these."""
        parts = [self.client.compute(list(self._parts[number])) for number in numbers]
        return [
            self.client.submit(checked, number, *part, pure=False) for number, part in zip(numbers, parts, strict=True)
        ]

    def first(self) -> list[Future]:
        """All of them, as they were checked for the survey; they are held no longer than the caller does."""
        found, self._checked = self._checked, None
        return self.checked(range(len(self._parts))) if found is None else found


class Shares:
    """The partitions as shares of the workers' threads; `build(partitions)` makes a share's object on its worker."""

    def __init__(self, partitions: Partitions, build: Callable[[list[Any]], Any], worker_timeout: float) -> None:
        self._partitions, self._build, self._timeout = partitions, build, worker_timeout
        self._client = partitions.client
        self._looked_at = 0.0
        self.lost = 0  # shares that had to be made again
        first = partitions.first()
        holders = self._client.who_has(first)
        places = [next(iter(holders.get(future.key, ())), "") for future in first]
        self._dealt, self._homes = dealt(partitions.survey.rows, places, self._living())
        self._objects = [
            self._made(home, [first[number] for number in numbers])
            for home, numbers in zip(self._homes, self._dealt, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._dealt)

    @property
    def address(self) -> str:
        """That of the scheduler."""
        return str(self._client.scheduler.address if self._client.scheduler else self._client)

    # ---- Work ----

    def ask(
        self, work: Callable[..., _Found], *common: Any, each: Sequence[Any] | None = None
    ) -> Waiting[list[_Found]]:
        """What `work(share, *common)` returns for every share, or `work(share, one of each, *common)`.

        Raises
        ------
        SharesLostError
            If workers died meanwhile. Shares that did not die may have done the work.
        ClusterError
            If no worker is left, or data cannot be computed again, or the scheduler is lost.
        """
        own: list[tuple[Any, ...]] = [()] * len(self) if each is None else [(one,) for one in each]
        tasks = [
            self._client.submit(work, share, *one, *common, workers=[home], pure=False)
            for share, home, one in zip(self._objects, self._homes, own, strict=True)
        ]
        return (yield from self._gathered(tasks))

    def ask_until_answered(
        self, work: Callable[..., _Found], *common: Any, each: Sequence[Any] | None = None
    ) -> Waiting[list[_Found]]:
        """The same for work that changes nothing: it is done again where workers die."""
        while True:
            try:
                return (yield from self.ask(work, *common, each=each))
            except SharesLostError:
                continue

    def ask_one(self, number: int, work: Callable[..., _Found], *arguments: Any) -> Waiting[_Found]:
        """What `work` returns for one share."""
        task = self._client.submit(work, self._objects[number], *arguments, workers=[self._homes[number]], pure=False)
        found: list[_Found] = yield from self._gathered([task])
        return found[0]

    def _gathered(self, tasks: list[Future]) -> Waiting[list[Any]]:
        """The results, once all are there; between two looks, a moment passes."""
        loop: Any = self._client.loop
        everything = asyncio.run_coroutine_threadsafe(_results(self._client, tasks), loop.asyncio_loop)
        try:
            while True:
                try:
                    return everything.result(_LOOK)
                except TimeoutError:
                    if everything.done():  # it is the work's own
                        raise
                self._look_at_workers()
                yield
        except KilledWorker:
            self._replace_lost()
            raise SharesLostError([]) from None
        except (CancelledError, asyncio.CancelledError, CommClosedError) as error:
            self._replace_lost()  # if a dead worker is the reason
            raise ClusterError(self._reason(error)) from error
        finally:
            everything.cancel()
            if self._client.status == "running":
                self._client.cancel([task for task in tasks if not task.done()])

    def _reason(self, error: BaseException) -> str:
        if self._client.status != "running":
            return f"the connection to the scheduler at {self.address} is lost"
        return (
            f"data of a lost worker cannot be computed again ({error}); collections that come from files or functions "
            "can be, those that were scattered to workers cannot"
        )

    # ---- Lost workers ----

    def _living(self) -> list[_Worker]:
        """The workers there are; raises where the scheduler does not answer."""
        if self._client.status == "running":
            workers = self._client.scheduler_info()["workers"]
            if self._client.status == "running":
                return [_Worker(address, int(about["nthreads"])) for address, about in sorted(workers.items())]
        raise ClusterError(f"the connection to the scheduler at {self.address} is lost")

    def _look_at_workers(self) -> None:
        now = time.monotonic()
        if now < self._looked_at + _LOOK_AT_WORKERS:
            return
        self._looked_at = now
        self._replace_lost()

    def _replace_lost(self) -> None:
        """Make the shares of dead workers again, on the living ones with the fewest per thread."""
        living = {worker.address for worker in self._living()}
        lost = [number for number, home in enumerate(self._homes) if home not in living]
        if not lost:
            return
        workers = self._awaited()
        for number in lost:
            loads = {worker: self._homes.count(worker.address) / worker.threads for worker in workers}
            self._homes[number] = min(workers, key=lambda worker: loads[worker]).address
            parts = self._partitions.checked(self._dealt[number])
            self._objects[number] = self._made(self._homes[number], parts)
        self.lost += len(lost)
        raise SharesLostError(lost)

    def _awaited(self) -> list[_Worker]:
        """The workers there are, one at least; a nanny may be about to start one."""
        until = time.monotonic() + self._timeout
        while not (workers := self._living()):
            if time.monotonic() >= until:
                raise ClusterError(f"no worker is left, and none came within worker_timeout={self._timeout:g} seconds")
            time.sleep(_LOOK)
        return workers

    def _made(self, home: str, parts: list[Future]) -> Future:
        return self._client.submit(self._build, parts, workers=[home], pure=False)


async def _results(client: Client, tasks: list[Future]) -> list[Any]:
    found: list[Any] = await client.gather(tasks, asynchronous=True)
    return found


def dealt(rows: Sequence[int], places: Sequence[str], workers: Sequence[_Worker]) -> tuple[list[list[int]], list[str]]:
    """The partitions of each share, and the worker of each.

    The largest are dealt first. A partition stays on the worker that has it, unless a thread there would get more than
    1.2 times its fair part of the rows; then it goes to the thread that has least.
    """
    if not workers:
        raise ClusterError("the cluster has no workers")
    homes = [worker.address for worker in workers for _ in range(worker.threads)]
    fair = sum(rows) / len(homes)
    loads, shares = [0] * len(homes), [[] for _ in homes]  # type: tuple[list[int], list[list[int]]]
    for number in sorted(range(len(rows)), key=lambda number: -rows[number]):
        if not rows[number]:
            continue
        least = min(range(len(homes)), key=loads.__getitem__)
        own = [slot for slot, home in enumerate(homes) if home == places[number]] or [least]
        slot = min(own, key=loads.__getitem__)
        if loads[slot] and loads[slot] + rows[number] > _UNEVEN * fair:
            slot = least
        loads[slot] += rows[number]
        shares[slot].append(number)
    kept = [slot for slot, share in enumerate(shares) if share]
    return [sorted(shares[slot]) for slot in kept], [homes[slot] for slot in kept]


def unfinished(waiting: Waiting[_Found]) -> Generator[bool, None, _Found]:
    """The same where whoever looks wants to hear that the work is not done."""
    with closing(waiting):
        while True:
            try:
                next(waiting)
            except StopIteration as done:
                found: _Found = done.value
                return found
            yield False


def completed_by_workers(waiting: Waiting[_Found]) -> _Found:
    """The outcome, however long it takes."""
    while True:
        try:
            next(waiting)
        except StopIteration as done:
            found: _Found = done.value
            return found
