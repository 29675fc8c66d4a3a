"""The plot of `fine_tuning.csv`: the task's main metric against fine-tuning steps, a line a start."""

import pathlib
from collections.abc import Mapping, Sequence

from launch.plots.style import COLORS, LINES, MARKERS, STYLE, new_figure, save_figure
from launch.runs.columns import (
    FINE_TUNING_CLIENTS,
    FINE_TUNING_STEPS,
    MEMBERS,
    NEW,
)
from launch.runs.task_columns import TaskColumns

STARTS = ("trained start", "random start")
GROUPS = {MEMBERS: "clients", NEW: "new clients"}


def draw_fine_tuning(
    rows: Sequence[Mapping[str, str]], task: TaskColumns, title: str, path: pathlib.Path
) -> pathlib.Path:
    """Draws the main metric after each number of steps: a panel for clients, and one for new clients if there are any.

    Args:
      rows: of `fine_tuning.csv`, each {column: cell}.
      task: which metric that is.
      title: the run.
      path: the PNG file.
    """
    import matplotlib

    groups = [group for group in GROUPS if any(row[FINE_TUNING_CLIENTS] == group for row in rows)]
    with matplotlib.rc_context(STYLE):
        figure = new_figure(1.2 + 4.2 * len(groups), 3.6)
        axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for ax, group in zip(axes, groups, strict=True):
            chosen = [row for row in rows if row[FINE_TUNING_CLIENTS] == group]
            for i, (column, label) in enumerate(zip(task.starts, STARTS, strict=True)):
                values = [float(row[column]) for row in chosen]
                ax.plot(values, LINES[i], color=COLORS[i], marker=MARKERS[i], markersize=4, label=label)
            # Evenly spaced, since the numbers of steps grow roughly by a factor and may begin with 0.
            ax.set_xticks(range(len(chosen)), [row[FINE_TUNING_STEPS] for row in chosen])
            ax.set(xlabel="fine-tuning steps, at most", title=GROUPS[group])
        axes[0].set(ylabel=f"{task.label} on own test splits, mean")
        axes[0].legend()
        figure.suptitle(title)
        return save_figure(figure, path)
