"""What an older version of the protocol is told instead: a peer refuses fields that its version does not have."""

from typing import TypeVar

import msgspec

from edge_daemon.contract import Outcome, Picture, Receipt, ReceiptAnswer
from edge_daemon.upstream.messages import (
    SINCE_2,
    SINCE_3,
    PictureAnswer,
    ReceiptFound,
    ReceiptPush,
    Result,
    Welcome,
)

T = TypeVar("T", bound=msgspec.Struct)


def since(request: object) -> int:
    """The first version that has such a request."""
    return 3 if isinstance(request, SINCE_3) else 2 if isinstance(request, SINCE_2) else 1


def for_version(message: T, protocol: int) -> T:
    """The message as a peer of that version can read it."""
    replace = msgspec.structs.replace
    if protocol < 2 and isinstance(message, PictureAnswer):
        return replace(message, picture=_picture_of_1(message.picture))
    if protocol >= 3:
        return message
    match message:
        case Welcome():
            return replace(message, epoch_raised=None)
        case ReceiptPush():
            return replace(message, receipt=_receipt_of_2(message.receipt))
        case ReceiptFound(answer=ReceiptAnswer(receipt=Receipt() as receipt) as answer):
            return replace(message, answer=replace(answer, receipt=_receipt_of_2(receipt)))
        case Result(outcome=Outcome(receipt=Receipt() as receipt) as outcome):
            return replace(message, outcome=replace(outcome, receipt=_receipt_of_2(receipt)))
        case _:
            return message


def _receipt_of_2(receipt: Receipt) -> Receipt:
    """That a person has resolved it shows in `requiresManualReview` alone."""
    return msgspec.structs.replace(receipt, resolution=None)


def _picture_of_1(picture: Picture) -> Picture:
    """Version 1 has no `orientationMismatch`: such a picture is not to be relied on, and the reason says why."""
    if picture.orientation_mismatch is None:
        return picture
    return msgspec.structs.replace(
        picture,
        orientation_mismatch=None,
        settle="unreliable",
        settle_reason=f"the screen is turned {picture.orientation_mismatch}, not {picture.orientation}",
    )
