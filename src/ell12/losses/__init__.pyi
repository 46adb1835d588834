"""The names of this package, and where they live: for type checkers and the package itself."""

from ell12.losses.cox import CoxLoss as CoxLoss
from ell12.losses.image_noise import (
    AbsoluteLoss as AbsoluteLoss,
)
from ell12.losses.image_noise import (
    KullbackLeiblerLoss as KullbackLeiblerLoss,
)
from ell12.losses.multinomial import MultinomialLoss as MultinomialLoss
from ell12.losses.pointwise import (
    HuberLoss as HuberLoss,
)
from ell12.losses.pointwise import (
    LogisticLoss as LogisticLoss,
)
from ell12.losses.pointwise import (
    PoissonLoss as PoissonLoss,
)
from ell12.losses.pointwise import (
    SquaredLoss as SquaredLoss,
)
from ell12.losses.quadratic import QuadraticLoss as QuadraticLoss
from ell12.losses.row_blocks import RowsLoss as RowsLoss
from ell12.losses.sum_over_rows import LinearLoss as LinearLoss
