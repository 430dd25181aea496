"""A calibration for a person to judge: one self-contained page, and its figures as PNGs."""

from calibration.report.write import write_report

__all__ = ["write_report"]
