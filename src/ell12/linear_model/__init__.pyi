"""The names of this package, and where they live: for type checkers and the package itself."""

from ell12.linear_model.classifier import L12Classifier as L12Classifier
from ell12.linear_model.cox_regressor import Cox as Cox
from ell12.linear_model.cox_regressor import L12CoxRegressor as L12CoxRegressor
from ell12.linear_model.cross_validation import (
    L12ClassifierCV as L12ClassifierCV,
)
from ell12.linear_model.cross_validation import (
    L12CoxRegressorCV as L12CoxRegressorCV,
)
from ell12.linear_model.cross_validation import (
    L12RegressorCV as L12RegressorCV,
)
from ell12.linear_model.families import Family as Family
from ell12.linear_model.families import Huber as Huber
from ell12.linear_model.families import Logistic as Logistic
from ell12.linear_model.families import Multinomial as Multinomial
from ell12.linear_model.families import Poisson as Poisson
from ell12.linear_model.families import Squared as Squared
from ell12.linear_model.regressor import L12Regressor as L12Regressor
