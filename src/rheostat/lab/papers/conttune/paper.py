"""The published numbers: Lian et al., "ContTune", VLDB 2023. Rows and columns have the paper's names."""

from __future__ import annotations

from collections.abc import Mapping

QUERIES: Mapping[str, str] = {"WordCount": "wordcount", "Q1": "q1", "Q2": "q2", "Q3": "q3", "Q5": "q5", "Q8": "q8"}
"""The paper's name -> the simulated job."""
DHALION, DS2, BIG_DS2, DRAGSTER = "Dhalion", "DS2", "Big + DS2", "Dragster"
DS2_RULE = "DS2 as published"
"""DS2 with the rule of its own controller, which skips a change that only removes single tasks."""
ALPHA_0, ALPHA_3, RANDOM = "ContTune alpha=0", "ContTune alpha=3", "Random Search"

Table = Mapping[str, tuple[float, ...]]

RECONFIGURATIONS: Table = {
    DHALION: (3.08, 5.36, 4.97, 3.84, 5.59, 3.61),
    DS2: (1.78, 2.29, 2.29, 1.49, 3.34, 3.21),
    BIG_DS2: (1.73, 2.22, 2.29, 1.66, 3.34, 3.02),
    DRAGSTER: (2.75, 3.85, 3.85, 2.75, 4.95, 3.85),
    ALPHA_0: (1.33, 1.61, 1.62, 1.26, 2.01, 1.46),
    ALPHA_3: (1.16, 1.32, 1.28, 1.18, 1.55, 1.26),
    RANDOM: (11.16, 22.72, 17.43, 16.18, 13.36, 8.72),
}
"""Table 4a: per tuning."""
MEANS: Mapping[str, float] = {
    DHALION: 4.41,
    DS2: 2.40,
    BIG_DS2: 2.37,
    DRAGSTER: 3.67,
    ALPHA_0: 1.55,
    ALPHA_3: 1.29,
    RANDOM: 14.93,
}
"""Table 4a's last column, which the paper calls SUM."""
MOST_CORES: Table = {
    DHALION: (17, 30, 29, 22, 27, 13),
    DS2: (14, 26, 24, 18, 25, 11),
    BIG_DS2: (16, 32, 32, 32, 32, 16),
    DRAGSTER: (16, 32, 32, 32, 32, 16),
    ALPHA_0: (16, 32, 32, 32, 32, 16),
    ALPHA_3: (16, 32, 32, 32, 32, 16),
    RANDOM: (16, 32, 32, 32, 32, 16),
}
"""Table 4b."""
P_MAX: Mapping[str, int] = dict(zip(QUERIES, map(int, MOST_CORES[ALPHA_3]), strict=True))
"""Bound of Dragster and Random Search: "we use p^max in ContTune (alpha=3) as the maximal bound" (section 7.1)."""
RUNNING_S: Table = {
    DHALION: (81503.71, 87407.70, 83633.13, 82783.87, 88572.63, 80546.21),
    DS2: (76658.36, 76397.77, 76144.72, 75148.37, 80467.74, 79644.56),
    BIG_DS2: (76762.78, 76236.57, 76248.81, 75607.61, 80230.45, 78697.58),
    DRAGSTER: (81062.96, 80691.36, 80405.64, 78828.27, 84426.93, 81806.26),
    ALPHA_0: (75518.32, 75050.01, 74931.15, 74636.20, 77506.44, 75126.16),
    ALPHA_3: (75213.18, 74560.88, 74350.65, 74439.40, 76626.16, 74772.08),
}
"""Table 4c: end to end, 120 tunings."""
TUNING_S: Table = {
    DHALION: (8226.54, 9441.17, 8888.33, 7870.00, 11928.58, 8032.83),
    DS2: (4624.70, 3991.42, 4014.15, 2955.07, 7128.68, 7163.79),
    BIG_DS2: (4641.78, 3901.92, 4100.27, 3414.64, 6941.12, 6697.58),
    DRAGSTER: (8569.01, 7685.27, 7681.32, 6757.03, 11533.06, 9570.16),
    ALPHA_0: (3394.57, 2725.56, 2818.33, 2476.41, 4209.26, 3090.27),
    ALPHA_3: (2947.20, 2293.70, 2206.18, 2304.35, 3324.88, 2736.19),
}
"""Table 4d: 120 tunings."""
BACKLOGGED: Table = {
    DHALION: (12.79, 28.31, 19.39, 22.03, 27.43, 7.38),
    DS2: (1.92, 4.60, 2.86, 3.53, 8.03, 1.52),
    BIG_DS2: (1.52, 3.22, 1.96, 2.33, 7.00, 1.40),
    DRAGSTER: (6.08, 7.97, 7.11, 2.52, 7.49, 5.14),
    ALPHA_0: (1.01, 2.04, 1.31, 1.76, 6.86, 0.66),
    ALPHA_3: (1.04, 1.79, 1.34, 1.50, 6.48, 0.63),
}
"""Table 4e: per cent of all data."""
CORE_SECONDS: Table = {
    DHALION: (540840.16, 874697.97, 796300.50, 692169.32, 863432.32, 520995.33),
    DS2: (550029.28, 906065.83, 821041.00, 698066.74, 876788.87, 524793.87),
    BIG_DS2: (562825.71, 929565.85, 853817.58, 732693.26, 899933.87, 535530.00),
    DRAGSTER: (570678.66, 947174.81, 865663.73, 736326.66, 930962.75, 543605.93),
    ALPHA_0: (548514.47, 903635.23, 820388.86, 698339.79, 878424.08, 533789.47),
    ALPHA_3: (532022.10, 905940.99, 817178.90, 699401.10, 878743.96, 533849.47),
}
"""Table 4f: 120 tunings."""
CORES_AT_10: Table = {ALPHA_3: (13, 25, 23, 18, 22, 10), DS2: (14, 26, 24, 18, 25, 11)}
"""Table 5: at the second 10 W_u."""
BUFFERED_S: Table = {
    DHALION: (1277.17, 5966.53, 2744.8, 2913.87, 4644.05, 513.38),
    DS2: (33.66, 406.35, 130.57, 193.3, 1339.06, 480.77),
    BIG_DS2: (121, 334.65, 148.54, 192.97, 1289.33, 0.04),
    DRAGSTER: (493.95, 1006.09, 724.32, 71.24, 893.87, 236.1),
    ALPHA_0: (123.75, 324.45, 112.82, 159.79, 1297.18, 35.89),
    ALPHA_3: (265.98, 267.18, 144.47, 135.05, 1301.28, 35.89),
}
"""Table 6: 120 tunings."""
PRINTED: Mapping[str, Table] = {
    "4a": RECONFIGURATIONS, "4b": MOST_CORES, "4c": RUNNING_S, "4d": TUNING_S, "4e": BACKLOGGED, "4f": CORE_SECONDS,
    "5": CORES_AT_10, "6": BUFFERED_S,
}  # fmt: skip
"""Tables with a column per query."""
WORDCOUNT_CHANGES: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    DS2: ((35, 22, 13), (38, 25, 13), (35, 26, 9)),
    ALPHA_3: ((24, 11, 10), (23, 13, 9), (22, 13, 8)),
}
"""Table 7: all, against back pressure, and for over-provisioned jobs; per1 to per3."""
Q1_CHANGES: Mapping[str, tuple[int, ...]] = {
    DS2: (51, 44, 47, 41, 46, 46),
    "CBO (AF 4)": (26, 25, 27, 28, 32, 26),
    "CBO (AF 5)": (22, 23, 27, 28, 25, 26),
}
"""Table 8: per1 to per6."""
REAL_CHANGES: Table = {DS2: (58, 39, 40), ALPHA_0: (44, 29, 22), ALPHA_3: (32, 22, 17)}
"""Figure 7, by the text of section 7.3: Video streaming, ETL, Monitoring."""
SAVED: Mapping[str, float] = {ALPHA_0: 35.42, ALPHA_3: 46.25}
"""Reconfigurations saved against DS2, in per cent (section 7.2)."""
EXAMPLE_SIZES, EXAMPLE_ALPHA, EXAMPLE_P_MAX, EXAMPLE_PR_USE = (1, 4, 9, 10, 15), 2, 15, 0.8
"""Figure 3: sizes in H^t, alpha, p^max, and the Pr_use that section 6.1 prints."""
PHI = 3
"""Most reconfigurations of DS2 per tuning (footnote 2)."""

TUNINGS = 120
"""Six permutations of 20 levels each."""
HOLD_S = 600
RESTART_S: Mapping[str, float] = {
    query: seconds / (TUNINGS * count)
    for query, seconds, count in zip(QUERIES, TUNING_S[DS2], RECONFIGURATIONS[DS2], strict=True)
}
"""Seconds of one reconfiguration: Table 4d over Table 4a, of the DS2 row."""
FITTED: Mapping[str, frozenset[str]] = {
    "4a": frozenset({DS2}),
    "4d": frozenset({DS2}),
    "4e": frozenset({DS2}),
    "5": frozenset({ALPHA_3}),
    "6": frozenset({DS2}),
    "8": frozenset({DS2}),
}
"""Rows that a parameter is fitted to: curves and noise to DS2's counts and Table 5, the restart to DS2's times, the
seconds between two decisions (20 and not 50) to DS2's backlogs."""
