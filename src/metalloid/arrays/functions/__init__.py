"""The public functions of arrays, by the chapters of the array API. `api` exports them."""
