"""Bind Python values to the parameters of kernels.

`signature_binder` binds all arguments of a launch: one `ArgumentBinder` per parameter, for buffers,
tensors, textures, samplers or structs. `struct_binder.binder_for` chooses among them. Structs are
written member by member (`member_writers`); `argument_buffer` holds one that many launches use.
Called by `kernels`.
"""
