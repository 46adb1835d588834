"""The names of this package, and where they live: for type checkers and the package itself."""

from .cox import CoxLoss as CoxLoss
from .image_noise import AbsoluteLoss as AbsoluteLoss
from .image_noise import KullbackLeiblerLoss as KullbackLeiblerLoss
from .multinomial import MultinomialLoss as MultinomialLoss
from .pointwise import HuberLoss as HuberLoss
from .pointwise import LogisticLoss as LogisticLoss
from .pointwise import PoissonLoss as PoissonLoss
from .pointwise import SquaredLoss as SquaredLoss
from .quadratic import QuadraticLoss as QuadraticLoss
from .row_blocks import RowsLoss as RowsLoss
from .sum_over_rows import LinearLoss as LinearLoss
