"""Exceptions from nurseries come in groups; people want the errors in them."""

from collections.abc import Iterator


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The single errors of a group, depth first."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
