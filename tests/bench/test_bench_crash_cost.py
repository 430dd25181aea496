"""The figures of what the promise costs: complete, and counted where they can be. None is judged by time."""

from pathlib import Path

import msgspec

from edge_daemon.bench.crash.cost import CostFigures, measure_cost

FRAME_BYTES = 4096 + 24


def test_the_cost_is_told_beside_a_floor_and_counted_where_it_can_be(tmp_path: Path) -> None:
    figures = measure_cost(tmp_path, 64)
    assert set(msgspec.to_builtins(figures)) == {field.name for field in msgspec.structs.fields(CostFigures)}
    assert figures.actions == 64
    assert min(value for value in msgspec.structs.astuple(figures) if value != figures.overhead_us) > 0
    assert figures.ratio == round(figures.commit_us / figures.floor_us, 3)
    assert figures.overhead_us == round(figures.commit_us - figures.floor_us, 1)
    # No more than bare SQLite writes for a row of the same length under the same kind of key.
    assert 5 * FRAME_BYTES < figures.bytes_per_receipt <= 1.02 * figures.floor_bytes_per_receipt
    assert figures.bytes_per_acknowledgement == 2 * FRAME_BYTES
    assert figures.devices_32_commits_per_action <= 0.5
    assert list(tmp_path.iterdir()) == []
