"""Numerics of neural networks: functions with derivatives, in the names and parameters of MLX.

Most are expressions of array functions that stay one node of the graph until they are evaluated,
and fuse with the expressions around them. Layers, parameters and optimizers are not part of this
package.
"""

from typing import TYPE_CHECKING, Any

from metalloid.arrays.functions.convolution import avg_pool, conv1d, conv2d, conv3d, max_pool
from metalloid.errors import unknown_attribute
from metalloid.nn.activations import (
    celu,
    elu,
    gelu,
    gelu_approx,
    gelu_fast_approx,
    glu,
    hard_shrink,
    hard_tanh,
    hardswish,
    leaky_relu,
    log_sigmoid,
    mish,
    prelu,
    relu,
    relu2,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    step,
)
from metalloid.nn.attention import scaled_dot_product_attention
from metalloid.nn.convolutions import (
    conv_general,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from metalloid.nn.embeddings import dropout, embedding
from metalloid.nn.gathered_products import gather_mm
from metalloid.nn.normalization import layer_norm, rms_norm
from metalloid.nn.quantization import (
    dequantize,
    from_fp8,
    gather_qmm,
    quantize,
    quantized_matmul,
    to_fp8,
)
from metalloid.nn.rotary import rope
from metalloid.nn.softmax import cross_entropy, log_softmax, logsumexp, softmax, softmin

__all__ = [
    "avg_pool",
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_general",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dequantize",
    "dropout",
    "elu",
    "embedding",
    "from_fp8",
    "gather_mm",
    "gather_qmm",
    "gelu",
    "gelu_approx",
    "gelu_fast_approx",
    "glu",
    "hard_shrink",
    "hard_tanh",
    "hardswish",
    "layer_norm",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "mish",
    "prelu",
    "quantize",
    "quantized_matmul",
    "relu",
    "relu2",
    "relu6",
    "rms_norm",
    "rope",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "step",
    "to_fp8",
]


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, __all__)
