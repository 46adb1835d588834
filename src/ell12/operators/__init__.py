"""Linear maps: what any of them can be asked for, those on images, and products with chosen columns."""

from ell12.operators.image_operators import Reshaped
from ell12.operators.linear_operator import (
    ArrayOperator,
    Composition,
    adjoint,
    adjoint_product,
    as_operator,
    dtype_of,
    has_columns,
    input_shape,
    is_out_of_memory,
    output_shape,
    product,
    select_columns,
    sent_to_device_of,
    stored,
    stored_entries,
    to_dense,
)
