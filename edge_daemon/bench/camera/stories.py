"""Every kind of story about a drawn screen."""

from edge_daemon.bench.camera import stories_changing, stories_staying
from edge_daemon.bench.camera.story import Tell

KINDS: dict[str, Tell] = {
    tell.__name__: tell
    for tell in (
        stories_staying.still,
        stories_staying.cursor,
        stories_staying.blinker,
        stories_staying.spinner,
        stories_staying.status_bar,
        stories_staying.auto_brightness,
        stories_changing.page_change,
        stories_changing.scroll,
        stories_changing.fling,
        stories_changing.slide,
        stories_changing.fade,
        stories_changing.keyboard,
        stories_changing.notification,
        stories_changing.dialog,
        stories_changing.switch,
        stories_changing.list_row,
        stories_changing.video,
        stories_changing.big_spinner,
        stories_changing.shimmer,
        stories_changing.traveller,
        stories_changing.typing,
        stories_changing.progress,
        stories_changing.spinner_then_page,
        stories_changing.cursor_then_switch,
        stories_staying.camera_moved,
        stories_staying.screen_off,
    )
}
