"""The published numbers: Geldenhuys, Scheinert, Kao, Thamsen, "Phoebe", ICWS 2022, section IV."""

from __future__ import annotations

from collections.abc import Mapping

S24, S12, S4 = "Static 24", "Static 12", "Static 4"
PHOEBE, REACTIVE, TWRES, OURS = "Phoebe", "Reactive", "TWRES", "Ours"
ROWS = (S24, S12, S4, PHOEBE, REACTIVE, TWRES, OURS)
SCALING = (PHOEBE, REACTIVE, TWRES, OURS)

TSW, YSB = "tsw", "ysb"
EXPERIMENTS = (TSW, YSB)
TITLES: Mapping[str, str] = {TSW: "TSW", YSB: "YSB"}

LONG_S = 360.0
"""6m+, the largest recovery time that the paper prints, in seconds."""
TARGET_S = 180.0
EQUAL_D, MAIN_D, DERIVED_D = 85.0, 110.0, 120.0
"""Phoebe's D, which the paper does not state. 110 s is fitted to its savings: it is in our row of Table II. 120 s is
what section IV-B gives: the shortest recovery under low load is "in the region of 120s", and with next to no load that
is D. 85 s is near what ours learns: the comparison at equal knowledge."""
DOWNTIMES = EQUAL_D, 90.0, MAIN_D, DERIVED_D, 130.0

_M = LONG_S
RECOVERY: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    TSW: {
        S24: (140, 150, 200, 165, 155, 185, 240, 160),
        S12: (160, 165, _M, 195, 205, _M, _M, 210),
        S4: (_M,) * 8,
        PHOEBE: (145, 170, 200, 175, 175, 210, 240, 210),
        REACTIVE: (_M,) * 8,
        TWRES: (_M, _M, _M, _M, _M, _M, _M, 135),
    },
    YSB: {
        S24: (195, 155, 155, 190, 135, 185, 180, 145),
        S12: (_M, 210, 195, _M, 145, _M, 290, 155),
        S4: (_M,) * 8,
        PHOEBE: (235, 180, 195, 215, 160, 330, 180, 160),
        REACTIVE: (_M,) * 8,
        TWRES: (_M, _M, _M, 350, 230, _M, 340, _M),
    },
}
"""Table II, seconds; 360 is 6m+."""
WORKLOAD: Mapping[str, tuple[float, ...]] = {
    TSW: (52, 54, 140, 73, 84, 135, 166, 62),
    YSB: (186, 72, 60, 195, 7, 136, 130, 14),
}
"""Table II, 10^3/s at the failures."""
CHANGES: Mapping[str, Mapping[str, float]] = {
    TSW: {PHOEBE: 20, REACTIVE: 63, TWRES: 29},
    YSB: {PHOEBE: 20, REACTIVE: 40, TWRES: 24},
}
SAVING: Mapping[str, float] = {TSW: 25.5, YSB: 41.0}
SAVING_PROFILED: Mapping[str, float] = {TSW: 2.5, YSB: 9.9}
SAVING_DAY: Mapping[str, float] = {TSW: 22.0, YSB: 33.5}
"""Per cent of static 24's containers and seconds that Phoebe saves: without profiling, with it, and after a day."""
DAYS = 4.0
"""Six hours in a day."""
ERROR: Mapping[str, float] = {TSW: 4.5, YSB: 8.5}
"""Mean error of Phoebe's expected recovery times, in per cent."""
NEAR_OPTIMAL: Mapping[str, Mapping[str, float]] = {
    TSW: {S24: 90, PHOEBE: 80, REACTIVE: 35, TWRES: 20},
    YSB: {S24: 90, PHOEBE: 80, REACTIVE: 20, TWRES: 20},
}
"""Figures 6c and 6d, by the text: per cent of latencies near one second ("less than 20 %" as 20)."""
