"""The model that ``ell12 fit`` writes: features of named columns and a linear model of them, without pickles."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ell12.commands import CommandError, explained
from ell12.commands.table_design import Column, Design
from ell12.completion.saved import encode_model, read_model
from ell12.datasets.table_files import Table
from ell12.linear_model import L12Classifier, L12CoxRegressor, L12Regressor

KIND = "TableModel"  # what the file says that it holds
PLAIN = ("loss", "target", "event", "row_id", "alpha", "l2_weight", "version", "n_rows")


@dataclass(frozen=True)
class TableModel:
    """A linear model of the columns of a table.

    Parameters
    ----------
    design : Design
        The columns, as features of one scale.
    coef : array of shape (n_rows, n_features)
        Coefficients of these features, a row for each class where there are more than two.
    intercept : array of shape (n_rows,)
        Of the rows.
    classes : list of str
        The classes; empty where none are predicted.
    loss, target, event, row_id : str
        The loss; the columns of the target, of events and of ids in the file that was fitted.
    alpha, l2_weight : float
        The penalty.
    version : str
        Of ell12.
    n_rows : int
        How many rows were fitted.
    """

    design: Design
    coef: Any
    intercept: Any
    classes: list[str]
    loss: str
    target: str
    event: str
    row_id: str
    alpha: float
    l2_weight: float
    version: str
    n_rows: int

    @property
    def estimator(self) -> Any:
        """The linear model as an estimator of the features."""
        if self.classes:
            model: Any = L12Classifier(self.alpha, l2_weight=self.l2_weight)
            model.classes_, model.coef_, model.intercept_ = np.array(self.classes), self.coef, self.intercept
        else:
            is_cox = self.loss == "cox"
            kind: Any = L12CoxRegressor if is_cox else L12Regressor
            model = kind(self.alpha, l2_weight=self.l2_weight, **({} if is_cox else {"loss": self.loss}))
            model.coef_, model.intercept_ = self.coef[0], float(self.intercept[0])
        model.n_features_in_ = self.coef.shape[1]
        return model

    @property
    def words(self) -> list[str]:
        """The columns that hold words."""
        return [column.name for column in self.design.columns if column.categories is not None]

    def used(self) -> "TableModel":
        """The model without the columns that it does not use."""
        design, kept = self.design.part(np.any(self.coef != 0, axis=0))
        return TableModel(**vars(self) | {"design": design, "coef": self.coef[:, kept]})

    def predict(self, table: Table) -> tuple[dict[str, Any], list[str]]:
        """Predictions and, of classes, their probabilities, by name; and sentences on what was filled in."""
        X, notes = self.design.matrix(table)
        return predictions(self.estimator, X), notes

    def encoded(self) -> bytes:
        """The content of a file."""
        columns = [vars(column) for column in self.design.columns]
        state = {"columns": columns, "means": self.design.means, "scales": self.design.scales}
        state |= {"coef": self.coef, "intercept": self.intercept, "classes": self.classes}
        return encode_model(KIND, state | {name: getattr(self, name) for name in PLAIN})


def predictions(estimator: Any, X: Any) -> dict[str, Any]:
    """Predictions of an estimator and, of classes, their probabilities, by name."""
    found = {"prediction": estimator.predict(X)}
    if isinstance(estimator, L12Classifier):
        shares = estimator.predict_proba(X)
        found |= {f"P({name})": shares[:, k] for k, name in enumerate(estimator.classes_)}
    return found


def read_table_model(path: Path) -> TableModel:
    """The model that a file holds."""
    with explained(f"cannot read {path}"):
        try:
            state = read_model(path, KIND)
            columns = tuple(Column(**column) for column in state["columns"])
            design = Design(columns, state["means"], state["scales"])
            model = TableModel(
                design,
                state["coef"],
                state["intercept"],
                list(state["classes"]),
                *(state[name] for name in PLAIN),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CommandError(f"{path} holds no model of ell12 fit, or is damaged: {error}") from error
    size = len(design.features)
    if model.coef.shape[1:] != (size,) or design.means.shape != (size,) or not np.isfinite(model.coef).all():
        raise CommandError(f"{path} holds no model of ell12 fit, or is damaged: its parts do not fit")
    return model
