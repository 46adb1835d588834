"""What a law needs to know about a public function: how to call it, and what its answer must obey."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import Phase

from ell12.backend import as_numpy
from ell12.protocols import Solver

Data = dict[str, Any]

# The same few examples at every run; a failing one is not made smaller, which would take long.
FEW = {"derandomize": True, "deadline": None, "database": None, "phases": (Phase.generate,)}


@dataclass(frozen=True)
class Answer:
    """The numbers that a call found, and what it says about them."""

    value: Any
    steps: int = 0
    converged: bool | None = None
    result: Any = None

    @property
    def numbers(self):
        return as_numpy(self.value)


@dataclass(frozen=True)
class Unit:
    """Scaling arguments by c: the options that go with it, and the power of c by which the answer scales."""

    arguments: tuple[str, ...]
    power: int
    options: Callable[[float], Mapping[str, Any]] = lambda c: {}


@dataclass(frozen=True)
class Order:
    """Axes that belong together: what is permuted along them, and the answer's axis that follows, if any."""

    axes: Mapping[str, int]
    answer: int | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to use a public name.

    ``data`` makes the arguments from a random generator; ``solve`` takes them by name, and options.
    """

    name: str
    data: Callable[[np.random.Generator], Data]
    solve: Callable[..., Answer]
    units: tuple[Unit, ...] = ()
    orders: tuple[Order, ...] = ()
    weights: tuple[str, ...] = ()  # what belongs to a row, if rows have weights called sample_weight
    kinds: tuple[str, ...] = ("numpy", "tensor")  # of containers that each argument in ``arrays`` may be
    sparse: tuple[str, ...] = ()  # arguments that may be sparse matrices
    frames: tuple[str, ...] = ()  # arguments that may be pandas objects
    arrays: tuple[str, ...] = ()  # arguments that are arrays of numbers
    refused: tuple[str, ...] = ("masked", "strings", "objects")
    named: Mapping[str, str] = field(default_factory=dict)  # how an error calls an argument, if otherwise
    single: float = 1e-4  # how well single precision agrees, relative to the largest number; 0: not asked
    loose: Mapping[str, Any] = field(default_factory=dict)  # options for single precision, as a tol it can reach
    violation: Callable[[Data, Answer], float] | None = None  # of the first-order condition, in units of its tol
    interrupts: bool = False  # whether ``solve`` takes ``interrupt_at``, a step at which Ctrl-C comes
    shared: Callable[..., Any] | None = None  # makes of the data what ``solve`` then takes as ``shared``

    def __repr__(self):
        return self.name


def assert_close(found, expected, tol):
    """The largest difference is at most tol times the largest number."""
    found, expected = as_numpy(found), as_numpy(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    size = np.max(np.abs(expected), initial=0.0)
    error = np.max(np.abs(found - expected), initial=0.0)
    assert error <= tol * size, f"differs by {error:.3g} where the largest number is {size:.3g}"


class Interrupted(Solver):
    """A solver during whose step of a given number Ctrl-C comes."""

    def __init__(self, solver, step):
        self.solver, self.step = solver, step
        self.needs = solver.needs

    def iterates(self, loss, penalty, start):
        for number, iterate in enumerate(self.solver.iterates(loss, penalty, start), 1):
            if number == self.step:
                raise KeyboardInterrupt
            yield iterate


def interrupting(step):
    """A ``stop`` whose call of that number is interrupted as by Ctrl-C."""
    if step is None:
        return None
    calls = []

    def stop(history):
        calls.append(1)
        if len(calls) == step:
            raise KeyboardInterrupt
        return False

    return stop
