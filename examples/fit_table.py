"""A sparse model of a table: ``python examples/fit_table.py TABLE.csv TARGET``.

Texts become columns of zeros and ones, missing numbers the median of their column, and all columns get one scale.
The strength is chosen by cross-validation; texts as the target make a classifier.
"""

import sys
from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ell12 import L12ClassifierCV, L12RegressorCV, summary


def fitted(table: pd.DataFrame, target: str) -> Any:
    """The summary of a model of one column by all others."""
    table = table.dropna(subset=[target])
    X, y = table.drop(columns=[target]), table[target]
    texts = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="unknown"),
        OneHotEncoder(drop="if_binary", sparse_output=False),
    )
    numbers = SimpleImputer(strategy="median", add_indicator=True)
    columns = ColumnTransformer(
        [
            ("texts", texts, make_column_selector(dtype_exclude="number")),
            ("numbers", numbers, make_column_selector(dtype_include="number")),
        ],
        verbose_feature_names_out=False,
    )
    prepare = make_pipeline(columns, StandardScaler()).set_output(transform="pandas")
    Z = prepare.fit_transform(X)
    model = L12RegressorCV() if pd.api.types.is_numeric_dtype(y) else L12ClassifierCV()
    return summary(model.fit(Z, y.to_numpy()), Z, y.to_numpy(), intervals=False)


if __name__ == "__main__":
    print(fitted(pd.read_csv(sys.argv[1]), sys.argv[2]))
