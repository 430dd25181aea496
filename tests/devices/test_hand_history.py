"""What the notes on a frame rest on: whose move it was, when, and whether the hand was in the picture."""

from edge_daemon.devices.history import MOVES_KEPT, HandHistory


def test_a_move_of_the_edge_is_found_between_two_moments_and_no_other() -> None:
    history = HandHistory()
    history.moved_at_edge(100)
    history.moved_for_plane(200)
    history.moved_at_edge(300)
    assert history.edge_moved_between(99, 150)
    assert not history.edge_moved_between(100, 299), "a move of the plane's is none of the edge's"
    assert history.edge_moved_between(100, 300)
    assert not history.edge_moved_between(300, 400)


def test_a_move_that_is_told_late_is_found_where_it_was() -> None:
    history = HandHistory()
    history.moved_at_edge(500)
    history.moved_at_edge(300)
    assert history.last_edge_move_ns == 500
    assert history.edge_moved_between(200, 400)
    assert not history.edge_moved_between(300, 400)


def test_more_moves_than_are_kept_are_rather_said_than_forgotten() -> None:
    history = HandHistory()
    for moment in range(1, MOVES_KEPT + 11):
        history.moved_at_edge(moment)
    assert history.edge_moved_between(5, 6)
    assert not history.edge_moved_between(MOVES_KEPT + 10, MOVES_KEPT + 20)


def test_parking_is_on_the_account_of_the_move_it_ends() -> None:
    history = HandHistory()
    history.moved_for_plane(100)
    history.came_to_park(150)
    assert not history.edge_moved_between(0, 200)
    history.moved_at_edge(300)
    history.came_to_park(350)
    assert history.edge_moved_between(320, 400), "after a jog, the way back is the edge's as well"
    history.moved_for_plane(500)
    history.came_to_park(550)
    assert not history.edge_moved_between(400, 600)


def test_a_park_that_staff_asked_for_is_a_move_of_the_edge() -> None:
    history = HandHistory()
    history.moved_for_plane(100)
    history.came_to_park(150, at_edge=True)
    assert history.edge_moved_between(100, 200)


def test_the_hand_is_out_of_a_picture_only_while_it_stood_parked_all_the_while() -> None:
    history = HandHistory()
    assert not history.was_out_of_picture(10, 20), "nobody knows where it stands before it was parked"
    history.came_to_park(100)
    assert not history.was_out_of_picture(90, 120)
    assert history.was_out_of_picture(110, 120)
    history.leaves_park(200)
    assert history.was_out_of_picture(110, 190), "taken before it set out"
    assert not history.was_out_of_picture(190, 210), "taken while it set out"
    assert not history.was_out_of_picture(210, 220)
    history.moved_for_plane(300)
    history.came_to_park(400)
    assert not history.was_out_of_picture(310, 320)
    assert history.was_out_of_picture(410, 420)


def test_a_push_takes_the_hand_out_of_its_park_position_from_then_on() -> None:
    history = HandHistory()
    history.came_to_park(100)
    history.moved_at_edge(200)
    assert not history.parked
    assert history.was_out_of_picture(110, 200)
    assert not history.was_out_of_picture(110, 201)


def test_a_touch_of_the_hid_board_moves_no_hand() -> None:
    history = HandHistory()
    history.came_to_park(100)
    history.touched_at_edge(200)
    assert history.parked
    assert history.was_out_of_picture(210, 220)
    assert history.edge_moved_between(100, 210)
