"""The shares of the workers: partitions joined to as many shares as there are threads, and what happens to lost ones.

A share lives in the memory of one worker, as the result of a task that is pinned to it. Work on shares does not go
through Dask's tasks: these take some 15 ms to and fro, too long for rounds, and may be run again somewhere else, while
shares may change. A function is run on the workers instead, in their threads for tasks, which takes some 3 ms.

If a worker dies, its shares are made again on others, from partitions that Dask computes again, and whoever drives the
rounds puts back what a share had learnt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeVar

import distributed
from dask.delayed import Delayed
from distributed import Client, Future
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from larank.dask.collections import aligned_partitions
from larank.dask.survey import Survey, checked, summary_of

_LOOK = 0.05  # seconds between two looks at limits and Ctrl-C while workers work
_LOOK_AT_WORKERS = 1.0  # and at who of them is alive
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
        gap = model.result_.relative_gap
        told = ClusterError(f"{self}; the model of the last certificate is kept, its relative duality gap is {gap:.2g}")
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
        self.survey = Survey.of(completed_by_workers(awaited(client, _results(client, summaries))))

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
    """The partitions as shares of the workers' threads; `build(partitions, number)` makes one on its worker."""

    def __init__(self, partitions: Partitions, build: Callable[[list[Any], int], Any], worker_timeout: float) -> None:
        self._partitions, self._build, self._timeout = partitions, build, worker_timeout
        self._client = partitions.client
        self._looked_at = 0.0
        self._unready: set[int] = set()
        self.lost = 0  # shares that had to be made again
        first = partitions.first()
        holders = self._client.who_has(first)
        places = [next(iter(holders.get(future.key, ())), "") for future in first]
        self._dealt, self._homes = dealt(partitions.survey.rows, places, living(self._client))
        self._objects = [
            self._made(share, [first[number] for number in numbers]) for share, numbers in enumerate(self._dealt)
        ]

    def __len__(self) -> int:
        return len(self._dealt)

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
        own = {number: () if each is None else (each[number],) for number in range(len(self))}
        found = yield from self._answers(work, own, common)
        return [found[number] for number in own]

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
        found = yield from self._answers(work, {number: ()}, arguments)
        return found[number]

    def _answers(
        self, work: Callable[..., _Found], own: Mapping[int, tuple[Any, ...]], common: tuple[Any, ...]
    ) -> Waiting[dict[int, _Found]]:
        """Those of these shares, each of which has arguments of its own."""
        yield from self._made_ready()
        arguments = {self._objects[number].key: one for number, one in own.items()}
        homes = sorted({self._homes[number] for number in own})
        asked = self._client.run(
            _on_worker, work, arguments, common, workers=homes, on_error="return", asynchronous=True
        )
        answers: dict[str, Any] = yield from awaited(self._client, asked, self._look_at_workers)
        dead = [home for home in homes if isinstance(answers.get(home, OSError()), OSError)]
        for answer in answers.values():
            if isinstance(answer, BaseException) and not isinstance(answer, OSError):
                raise answer
        found = {key: value for home in homes if home not in dead for key, value in answers[home].items()}
        self._replace([number for number in own if self._objects[number].key not in found], dead)
        return {number: found[self._objects[number].key] for number in own}

    def _made_ready(self) -> Waiting[None]:
        """Wait until all shares are there."""
        if not self._unready:
            return
        tasks = [
            self._client.submit(_is_there, self._objects[number], workers=[self._homes[number]], pure=False)
            for number in self._unready
        ]
        try:
            yield from awaited(self._client, _results(self._client, tasks), self._look_at_workers)
        except KilledWorker:
            self._replace_lost()
            raise SharesLostError([]) from None
        except ClusterError:
            self._replace_lost()  # if a dead worker is the reason
            raise
        finally:
            if self._client.status == "running":
                self._client.cancel([task for task in tasks if not task.done()])
        self._unready.clear()

    # ---- Lost workers ----

    def _look_at_workers(self) -> None:
        now = time.monotonic()
        if now >= self._looked_at + _LOOK_AT_WORKERS:
            self._looked_at = now
            self._replace_lost()

    def _replace_lost(self) -> None:
        alive = {worker.address for worker in living(self._client)}
        self._replace([number for number, home in enumerate(self._homes) if home not in alive], [])

    def _replace(self, lost: list[int], dead: Sequence[str]) -> None:
        """Make lost shares again, on the living workers with the fewest per thread, and say so."""
        if not lost:
            return
        workers = self._awaited(dead)
        for number in lost:
            self._homes[number] = ""
        for number in lost:
            loads = {worker: self._homes.count(worker.address) / worker.threads for worker in workers}
            self._homes[number] = min(workers, key=lambda worker: loads[worker]).address
            self._objects[number] = self._made(number, self._partitions.checked(self._dealt[number]))
        self.lost += len(lost)
        raise SharesLostError(lost)

    def _awaited(self, dead: Sequence[str]) -> list[_Worker]:
        """The workers there are, one at least, without those known to be dead; a nanny may be about to start one."""
        until = time.monotonic() + self._timeout
        while not (workers := [worker for worker in living(self._client) if worker.address not in dead]):
            if time.monotonic() >= until:
                raise ClusterError(f"no worker is left, and none came within worker_timeout={self._timeout:g} seconds")
            time.sleep(_LOOK)
        return workers

    def _made(self, number: int, parts: list[Future]) -> Future:
        self._unready.add(number)
        return self._client.submit(self._build, parts, number, workers=[self._homes[number]], pure=False)


async def _on_worker(
    work: Callable[..., Any], arguments: Mapping[str, tuple[Any, ...]], common: tuple[Any, ...], dask_worker: Any
) -> dict[str, Any]:
    """On a worker: the answers of its shares, each from a thread for tasks; of others there is none."""
    here = {key: one for key, one in arguments.items() if key in dask_worker.data}
    threads, loop = dask_worker.executors["default"], asyncio.get_running_loop()
    asked = [partial(work, dask_worker.data[key], *one, *common) for key, one in here.items()]
    waiting = [loop.run_in_executor(threads, one) for one in asked]
    return dict(zip(here, await asyncio.gather(*waiting), strict=True))


def _is_there(share: Any) -> bool:
    return True


# ---- The cluster ----


def living(client: Client) -> list[_Worker]:
    """The workers there are; raises where the scheduler does not answer."""
    if client.status == "running":
        workers = client.scheduler_info()["workers"]
        if client.status == "running":
            return [_Worker(address, int(about["nthreads"])) for address, about in sorted(workers.items())]
    raise ClusterError(_lost_scheduler(client))


def awaited(
    client: Client, work: Coroutine[Any, Any, _Found], look: Callable[[], None] = lambda: None
) -> Waiting[_Found]:
    """What the client brings; after each moment of waiting there is a look."""
    answer = asyncio.run_coroutine_threadsafe(work, client.loop.asyncio_loop)
    try:
        while True:
            try:
                return answer.result(_LOOK)
            except TimeoutError:
                if answer.done():  # it is the work's own
                    raise
            if client.status != "running":
                raise ClusterError(_lost_scheduler(client))
            look()
            yield
    except (CancelledError, asyncio.CancelledError, CommClosedError) as error:
        if client.status != "running" or isinstance(error, CommClosedError):
            raise ClusterError(_lost_scheduler(client)) from error
        raise ClusterError(
            f"data of a lost worker cannot be computed again ({error}); collections that come from files or functions "
            "can be, those that were scattered to workers cannot"
        ) from error
    finally:
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody else asks for it


async def _results(client: Client, tasks: list[Future]) -> list[Any]:
    found: list[Any] = await client.gather(tasks, asynchronous=True)
    return found


def _lost_scheduler(client: Client) -> str:
    address = client.scheduler.address if client.scheduler else "its address"
    return f"the connection to the scheduler at {address} is lost"


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
