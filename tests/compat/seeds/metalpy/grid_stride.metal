for (uint i = global_id; i < N; i += grid_size) {
    // Process element i
}
