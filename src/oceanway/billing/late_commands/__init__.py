"""Open exposures that people close: by charging them, or by waiving them."""
