"""Public functions, one module per chapter of the array API. `api` exports them."""
