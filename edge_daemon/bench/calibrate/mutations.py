"""Ways to break the calibration that its acceptance must notice. Applied in the solver's process, for one run.

Each names what a careless change would do; the suite runs them on rigs where it does harm (see `harmful`).
"""

from typing import Any

import numpy as np

# What the world's process has to do differently, not the solver's.
RIG_MUTATIONS = ("no_one_sided_approach",)
MUTATIONS = ("no_distortion_terms", "no_one_sided_approach", "affine_forced", "half_pixel_shift")


def mutate(name: str) -> None:
    """Break the calibration package in this process. Raises ValueError for a name that is none of MUTATIONS."""
    if name == "no_distortion_terms":
        _no_distortion_terms()
    elif name == "affine_forced":
        _affine_forced()
    elif name == "half_pixel_shift":
        _half_pixel_shift()
    elif name and name not in RIG_MUTATIONS:
        raise ValueError(f"no mutation is called {name!r}")


def _no_distortion_terms() -> None:
    from calibration import fit_camera

    fit = fit_camera._fit
    fit_camera._fit = lambda screen_mm, seen, terms: fit(screen_mm, seen, 0)


def _affine_forced() -> None:
    from calibration import fit_hand

    fit_hand.KINDS = ("affine",)


def _half_pixel_shift() -> None:
    from calibration.detect import BoardFinder, BoardView

    find = BoardFinder.find

    def shifted(self: BoardFinder, *arguments: Any, **options: Any) -> BoardView:
        view = find(self, *arguments, **options)
        return BoardView(ids=view.ids, px=np.asarray(view.px + 0.5, dtype=np.float64))

    BoardFinder.find = shifted  # type: ignore[method-assign]
