"""The estimators: missing values of tables with their uncertainty, and ratings with ids."""
