"""How a newer settlement input reaches a reservation: the consumer, its works, and the worker that ends them."""
