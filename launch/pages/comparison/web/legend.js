// The legend of a chart: names that wrap as text does, so that none is cut and none lies on the chart.

import { makeElement } from "./table.js";

const STROKES = { solid: "solid", dash: "dashed", dashdot: "dashed", dot: "dotted" };

// Fills `place` with the curves' names, [{label, style}], whose traces in `chart` have their number as legend group. A
// click hides a curve, or shows it again.
export function showLegend(place, chart, curves, title = "") {
  const entries = curves.map(({ label, style }, i) => {
    const line = makeElement("i", { class: "line", style: `border-top: 3px ${STROKES[style.dash] ?? "solid"} ${style.color}` });
    const button = makeElement("button", { type: "button", "aria-pressed": "true", title: "hide or show" }, line, label);
    button.addEventListener("click", () => {
      const isShown = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", String(isShown));
      const traces = chart.data.flatMap((trace, number) => (trace.legendgroup === String(i) ? [number] : []));
      Plotly.restyle(chart, { visible: isShown }, traces);
    });
    return button;
  });
  const name = title ? [makeElement("span", { class: "note" }, `${title}:`)] : [];
  place.replaceChildren(...(curves.length > 1 ? [...name, ...entries] : []));
}
