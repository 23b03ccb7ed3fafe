"""Types by name, as parameters declare them, and the types that rows keep.

>>> declared_type("list<int64>").type
ListType(list<item: int64>)
"""

from __future__ import annotations

import pyarrow as pa

from headrace.operators.read._layout import JSON, Column

_SCALARS = {
    "string": pa.large_string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
}


def declared_type(name: str) -> Column:
    """The column that a declared type stands for; ValueError where there is no such type."""
    if name == "json":
        return Column(pa.large_string(), JSON)
    if name.startswith("list<") and name.endswith(">"):
        element = declared_type(name[5:-1])
        if not element.form:
            return Column(pa.list_(element.type))
    if name not in _SCALARS:
        raise ValueError(f"{name!r} is no type here; there are {', '.join(_SCALARS)}, json and list<...>")
    return Column(_SCALARS[name])


def large_type(type_: pa.DataType, null: pa.DataType | None = None) -> pa.DataType:
    """The type with 64-bit strings, dictionaries decoded and extensions as stored, also inside of nested types.

    Where nothing but nulls is known, it is `null`, by default a string.
    """
    if isinstance(type_, pa.BaseExtensionType):
        return large_type(type_.storage_type, null)
    if pa.types.is_dictionary(type_):
        return large_type(type_.value_type, null)
    if pa.types.is_null(type_):
        return null or pa.large_string()
    if pa.types.is_string(type_) or pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_binary(type_) or pa.types.is_binary_view(type_):
        return pa.large_binary()
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(large_type(field.type, null)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(large_type(type_.value_type, null)))
    if pa.types.is_large_list(type_):
        return pa.large_list(type_.value_field.with_type(large_type(type_.value_type, null)))
    if pa.types.is_map(type_):
        return pa.map_(large_type(type_.key_type, null), large_type(type_.item_type, null))
    return type_
