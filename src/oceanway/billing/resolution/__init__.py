"""The end of a reconciliation case, by command."""
