"""The consumer's side: receipt and effect in one transaction, and targeted receipt reads."""
