"""Losses over rows that stream by, a chunk at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ell12.backend import inner, like, norm, rise_above_tangent
from ell12.checks import naming
from ell12.losses.of_prediction import Sessions, fact
from ell12.losses.pointwise import SquaredLoss
from ell12.losses.sum_over_rows import LinearLoss, check_kind
from ell12.operators.krylov import largest_eigenvalue
from ell12.protocols import Array, Batch, Point

AGAIN = "every pass must give the same ones again, as a list or a function that begins anew does"


class StreamedLoss(Sessions):
    """A loss over chunks of rows, which are read again for every pass.

    ``scale sum_i w_i l((A x)_i, b_i)`` with a loss l of each row.

    One chunk is in memory at a time, and nothing as long as the rows is kept. A value and a gradient at one point
    are one pass in a run, and two outside one. `ell12.ProxSVRG` makes the most of a pass; `ell12.NonmonotoneAPG`
    works as well.

    Parameters
    ----------
    chunks : iterable or callable
        Of ``(A, b)`` or ``(A, b, sample_weight)``: a list, another object that can be iterated over many times, or
        a function that returns an iterator. The chunks must come in the same order each time.
    loss : class, default SquaredLoss
        `ell12.SquaredLoss`, `ell12.LogisticLoss`, `ell12.HuberLoss` or `ell12.PoissonLoss`.
    scale : float, optional
        Factor of the whole loss; by default one over the number of rows, or their weight: the mean.
    **options
        Of the loss, such as ``delta``.

    See Also
    --------
    SquaredLoss : Sums of squares.
    ProxSVRG : Some rows in each step.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12 import StreamedLoss
    >>> A, b = np.eye(4), np.arange(4.0)
    >>> loss = StreamedLoss([(A[:2], b[:2]), (A[2:], b[2:])])
    >>> loss.value(loss.point(np.zeros(4))), loss.gradient(loss.point(np.zeros(4)))
    (1.75, array([ 0.  , -0.25, -0.5 , -0.75]))
    """

    def __init__(
        self,
        chunks: Iterable[Any] | Callable[[], Iterator[Any]],
        loss: type[LinearLoss] = SquaredLoss,
        *,
        scale: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        _check(chunks, loss)
        self.chunks, self.kind, self.options = chunks, loss, options
        self._scale = scale

    def point(self, x: Array) -> Point:
        """``x``; in place of a prediction, which would be as long as the rows, x itself."""
        return Point(x, x)

    def start(self) -> Array:
        """Zeros."""
        return self._survey[1]

    def value(self, point: Point) -> float:
        """The loss; one pass, shared with the gradient."""
        return self._evaluate(point.x)[1]

    def gradient(self, point: Point) -> Array:
        """The gradient; one pass, shared with the value."""
        return self._evaluate(point.x)[2]

    def divergence(self, point: Point, base: Point) -> float:
        """``f(point) - f(base) - <gradient(base), point - base>``, what rounding made counting as 0."""
        new, old = self.value(point), self.value(base)
        linear = inner(self.gradient(base), point.x - base.x)
        return rise_above_tangent(new, old, linear, base.x)

    def lipschitz(self) -> float:
        """A bound on the gradient's Lipschitz constant: one pass for each product of Lanczos's method."""
        return math.inf if math.isinf(self.kind.second_bound) else self._lipschitz

    def restrict(self, columns: Array) -> StreamedLoss:
        """The same loss in the given entries of x alone."""

        def chosen() -> Iterator[Any]:
            for A, *rest in self._read():
                yield (A[:, columns], *rest)

        return StreamedLoss(chosen, self.kind, scale=self.scale, **self.options)

    def batches(self, size: int, random: Any = None) -> Iterator[Batch]:
        """Losses over some rows of a chunk at a time, which sum to this one.

        The chunks come in their order; the batches of a chunk in a random one if ``random`` is given.
        """
        count, first = self._count(size), 0
        for loss in self._losses():
            batches = list(loss.batches(size, random))
            for batch in batches:
                yield Batch(batch.loss, first + batch.index, count)
            first += len(batches)

    @property
    def scale(self) -> float:
        """The factor of the whole loss."""
        return self._survey[0]

    def _read(self) -> Iterator[Any]:
        with naming("chunks"):
            return iter(self.chunks() if callable(self.chunks) else self.chunks)

    def _losses(self) -> Iterator[LinearLoss]:
        """The loss of each chunk, as many and as long as they were at first."""
        scale, _, rows = self._survey
        number = -1
        for number, loss in enumerate(self._new_losses(scale)):
            if number >= len(rows) or loss.b.shape[0] != rows[number]:
                raise ValueError(f"chunk {number} has not the rows that it had at first: {AGAIN}")
            yield loss
        if number + 1 != len(rows):
            raise ValueError(f"chunks ended after {number + 1} of {len(rows)}: {AGAIN}")

    def _new_losses(self, scale: float) -> Iterator[LinearLoss]:
        """The loss of each chunk that is not empty."""
        for number, chunk in enumerate(self._read()):
            try:
                A, b, weight = _parts(chunk)
                with naming("b"):
                    is_empty = np.shape(b)[:1] == (0,)
                if is_empty:
                    continue
                loss = self.kind(A, b, sample_weight=weight, **self.options | {"scale": scale})
            except (TypeError, ValueError) as error:
                raise type(error)(f"chunk {number}: {error}") from error
            yield loss

    @fact
    def _survey(self) -> tuple[float, Array, list[int]]:
        """The scale, zeros like x, and how many rows each chunk has: one pass."""
        total, start, rows = 0.0, None, []
        for loss in self._new_losses(1.0 if self._scale is None else self._scale):
            rows.append(int(loss.b.shape[0]))
            total += rows[-1] if loss.sample_weight is None else float(loss.sample_weight.sum())
            if start is not None and loss.start().shape != start.shape:
                columns = (loss.start().shape[0], start.shape[0])
                raise ValueError(f"chunk {len(rows) - 1}: it has %d columns, where the first has %d" % columns)
            start = loss.start() if start is None else start
        if start is None or total == 0:
            raise ValueError("chunks hold no rows of positive weight")
        return 1 / total if self._scale is None else self._scale, start, rows

    def _count(self, size: int) -> int:
        return sum(-(-rows // size) for rows in self._survey[2])

    def _new_memory(self) -> list[Any]:
        """The last x, with the value and the gradient there: one entry, or none."""
        return []

    def _evaluate(self, x: Array) -> tuple[Array, float, Array]:
        """x, the value and the gradient: one pass, or none where a session was here last."""
        for last in self._memory or ():
            if last[0] is x:
                return last
        value, gradient = 0.0, 0 * self.start()
        for loss in self._losses():
            point = loss.point(x)
            value += loss.value(point)
            gradient = gradient + loss.gradient(point)
        if self._memory is not None:
            self._memory[:] = [(x, value, gradient)]
        return x, value, gradient

    @fact
    def _lipschitz(self) -> float:
        def gram(v: Array) -> Array:
            total = 0 * v
            for loss in self._losses():
                total = total + loss.gram_product(v)
            return total

        start = like(np.random.default_rng(0).standard_normal(tuple(self.start().shape)), self.start())
        return largest_eigenvalue(gram, start / norm(start), rtol=0.05)


def _check(chunks: Any, loss: Any) -> None:
    if not callable(chunks) and not isinstance(chunks, Iterable):
        raise TypeError(f"chunks must be an iterable or a function that returns one, got {type(chunks).__name__}")
    with naming("chunks"):  # an array of no axes looks as if it could be iterated over
        used_up = not callable(chunks) and iter(chunks) is chunks  # by a first pass
    if used_up:
        raise TypeError("chunks can be read once only; give a list or a function that returns an iterator")
    check_kind(loss)


def _parts(chunk: Any) -> tuple[Any, Any, Any]:
    """A, b and the weights, if there are any."""
    if not isinstance(chunk, tuple | list) or len(chunk) not in (2, 3):
        raise TypeError("it must be a pair (A, b) or a triple (A, b, sample_weight)")
    return tuple(chunk) if len(chunk) == 3 else (*chunk, None)
