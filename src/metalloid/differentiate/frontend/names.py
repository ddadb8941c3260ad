"""Names that the text of a kernel may not have."""

import re

#: Names that adjoints of kernels declare.
GENERATED = re.compile(
    r"(?:d|dot)\d*_\w+|(?:entry|adjoint|extreme|share|given)_\w+|tape\w*|top|peak"
    r"|(?:g|saved|taken|count|iteration|length|segment|slope|value)_\d+"
)
#: Names of derivatives, which writers number if a parameter has such a name.
DERIVATIVE = re.compile(r"(?:d|dot)\d*_")
