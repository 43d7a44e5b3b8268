"""A kernel machine on a device: what the stream of an online classifier feeds where it is given one.

It takes the place of a compiled session and its provider; `kernel/blockwise.py` has the algorithm. The model is the
same arrays on the host, and tells all that a stream needs to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank.blocks import provider_for
from larank.blocks.device import DeviceKernel, check_is_dense, device_for
from larank.blocks.kernels import Kernel
from larank.blocks.provider import precision
from larank.kernel.blockwise import Blockwise
from larank.kernel.machine import Expansion, Machine, OnlineClassifier
from larank.kernel.stream import Examples, Feed

_Float = NDArray[np.float64]


class DeviceMachine(Machine):
    """Patterns on a device, from one call of `partial_fit` to the next."""

    is_its_model = True
    is_rounded = False  # the scores of a certificate are in double precision

    def __init__(self, kernel: Kernel, X: Any, device: Any, memory_limit: float, tau: float, seed: int) -> None:
        check_is_dense(device, X)
        values = DeviceKernel(device_for(device), kernel, precision(X), X)
        # The provider is asked about the kernel only.
        provider = provider_for(kernel, np.asarray(X[:1]), n_jobs=1)
        super().__init__(Blockwise(values, memory_limit, tau, seed, keeps_originals=True), provider)

    def look_at_kernel(self, X: Any, rows: NDArray[np.intp]) -> None:
        """By some examples, on the host."""
        if not self.provider.kernel.is_definite:
            super().look_at_kernel(np.asarray(X), rows)

    def feed(self, blocks: Iterator[Examples]) -> Feed:
        """Work on a part of a stream."""
        return DeviceFeed(self.session, blocks)

    def block_size(self) -> int:
        """As many examples as the device likes to score at once."""
        size: int = self.session.chunk_size()
        return size

    def scores(self, X: Any, expansion: Expansion, coefficients: _Float) -> _Float:
        """Of any examples."""
        scores: _Float = self.session.scores(X, expansion.slots, coefficients)
        return scores

    def patterns(self, expansion: Expansion) -> Any:
        """The examples with coefficients, as they were given."""
        return self.session.patterns(expansion.slots)

    def restore(self, model: OnlineClassifier, labels: Any, costs: Any, coefficients: csr_matrix) -> None:
        """Let the session take over the support patterns of a model."""
        examples = Examples(model.support_vectors_, model.support_, np.asarray(labels, np.int32), np.asarray(costs))
        self.session.restore(examples, coefficients.toarray())

    def rows_for(self, memory_limit: float) -> int | None:
        """What the memory is for is said by the session."""
        return None

    def make_room_for_model(self) -> None:
        """The model is on the host."""

    @property
    def kernel_values(self) -> int:
        """Computed so far."""
        values: int = self.session.kernel_values
        return values

    @property
    def seconds(self) -> dict[str, float]:
        """There are those of steps."""
        return {}


class DeviceFeed(Feed):
    """Chunks of a stream for block steps."""

    def __init__(self, session: Blockwise, blocks: Iterator[Examples]) -> None:
        self._session, self._blocks = session, blocks
        self._work: Iterator[None] = iter(())
        self._length = 0

    def advance(self, examples: int) -> int:
        """One block step of the chunk at hand; the number of its examples once it is done, 0 before."""
        if not self._length:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._work, self._length = self._session.process(block), len(block)
        if next(self._work, self) is None:
            return 0
        worked, self._length = self._length, 0
        return worked

    def finish_some(self, visits: int) -> bool:
        """One block step; True once none is needed."""
        return self._session.finish_some()

    def flush(self) -> None:
        """A model tells all that the session has."""
        if not self._length:
            self._session.tidy()

    def release(self) -> None:
        """There will be no other block."""
        self._blocks = iter(())
