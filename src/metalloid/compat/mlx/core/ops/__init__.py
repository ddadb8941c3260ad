"""Operations of ``mlx.core``, by chapters."""
