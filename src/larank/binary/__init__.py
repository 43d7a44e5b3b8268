"""The package of binary estimators; more classes by one-versus-rest."""
