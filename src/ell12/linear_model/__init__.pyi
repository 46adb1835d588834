"""The names of this package, and where they live: for type checkers and the package itself."""

from .classifier import L12Classifier as L12Classifier
from .cox_regressor import Cox as Cox
from .cox_regressor import L12CoxRegressor as L12CoxRegressor
from .cross_validation import L12ClassifierCV as L12ClassifierCV
from .cross_validation import L12CoxRegressorCV as L12CoxRegressorCV
from .cross_validation import L12RegressorCV as L12RegressorCV
from .families import Family as Family
from .families import Huber as Huber
from .families import Logistic as Logistic
from .families import Multinomial as Multinomial
from .families import Poisson as Poisson
from .families import Squared as Squared
from .regressor import L12Regressor as L12Regressor
