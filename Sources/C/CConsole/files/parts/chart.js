// A line chart, drawn as a path, with its numbers as a table for assistive technology.
import { h, svg } from "../core/dom.js";
import { numberText } from "../api/values.js";

/** Draws points `[x, y]` in the order of x. */
export function lineChart(points, { isTime = false, label = "", height = 120, from = null } = {}) {
  if (points.length === 0) return h("p", { class: "muted" }, "No values yet.");
  const width = 600;
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const low = from ?? Math.min(0, ...ys);
  const high = Math.max(...ys, low + 1e-9);
  const x = (value) => right === left ? width / 2 : ((value - left) / (right - left)) * width;
  const y = (value) => height - 4 - ((value - low) / (high - low || 1)) * (height - 10);
  const line = points.map(([a, b], index) => `${index === 0 ? "M" : "L"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  const style = right - left < 6 * 3600e3 ? { timeStyle: "medium" } : right - left < 3 * 86400e3 ? { dateStyle: "short", timeStyle: "short" }
    : { dateStyle: "medium" };
  const text = (value) => isTime ? new Date(value).toLocaleString("en-GB", style) : numberText(value);
  const shown = points.length > 60 ? points.filter((_, index) => index % Math.ceil(points.length / 60) === 0) : points;
  return h("div", {},
    h("div", { class: "row small muted" }, h("span", { class: "grow" }, numberText(Number(high.toPrecision(4))))),
    svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true",
      style: { height: `${height}px` } },
    svg("path", { class: "area-fill", d: `${line}L${x(right).toFixed(1)} ${height}L${x(left).toFixed(1)} ${height}Z` }),
    svg("line", { class: "axis", x1: 0, x2: width, y1: height - 1, y2: height - 1 }), svg("path", { d: line })),
    h("div", { class: "row small muted" }, h("span", { class: "grow" }, text(left)), h("span", {}, text(right))),
    h("div", { class: "visually-hidden" }, h("table", {}, h("caption", {}, label), h("tbody", {}, shown.map(([a, b]) =>
      h("tr", {}, h("th", { scope: "row" }, text(a)), h("td", {}, numberText(b))))))));
}
