// A method's sensitivity: cross-test and self-test against the value of a parameter.
(() => {
  "use strict";
  const { data, chart, figure, style } = window.kit;
  const box = document.getElementById("sensitivity-charts");
  for (const sweep of data) {
    const rows = ["cross", "own"].flatMap((kind) =>
      sweep.points.filter((p) => p[kind][0] !== null).map((p) => ({
        kind: kind === "cross" ? "cross-test" : "self-test", x: sweep.numeric ? p.value : p.text,
        y: 100 * p[kind][0], low: 100 * (p[kind][1] ?? p[kind][0]), high: 100 * (p[kind][2] ?? p[kind][0]), text: p.text,
      })));
    if (!rows.length) continue;
    const lower = sweep.lower === null ? [] : [100 * sweep.lower];
    chart(figure(box, sweep.title), `${sweep.label} against ${sweep.key}; the table below has the numbers.`, (width) =>
      Plot.plot({
        width, height: 300, style, marginLeft: 50, marginBottom: 42, marginTop: 24,
        x: sweep.numeric ? { label: sweep.key, nice: true } : { label: sweep.key, type: "point", domain: sweep.points.map((p) => p.text) },
        y: { label: `${sweep.label} (%)`, grid: true, nice: true },
        color: { domain: ["cross-test", "self-test"], range: ["#d55e00", "#0072b2"], legend: true },
        marks: [
          Plot.ruleY(lower, { strokeDasharray: "6,4" }),
          Plot.ruleX(rows, { x: "x", y1: "low", y2: "high", stroke: "kind" }),
          Plot.line(rows, { x: "x", y: "y", stroke: "kind", z: "kind" }),
          Plot.dot(rows, { x: "x", y: "y", fill: "kind" }),
          Plot.tip(rows, Plot.pointer({ x: "x", y: "y", title: (d) => `${sweep.key} ${d.text}\n${d.kind} ${d.y.toFixed(1)}` })),
        ],
        caption: lower.length ? "Dashed: old/old." : undefined,
      }));
  }
})();
