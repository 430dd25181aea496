"""The one base of every struct that crosses a process or a disk."""

import msgspec


class Data(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """Immutable, strict (an unknown field is refused), camelCase on the wire.

    Fields left at their default are not sent: absent and default mean the same.
    """
