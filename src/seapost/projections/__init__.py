"""Views folded from events: applied once and in order, with a receipt, recorded gaps and a summary."""
