// A record's pictures: t-SNE of old and new embeddings, predicted against true order, losses.
(() => {
  "use strict";
  const { data, chart, choice, style } = window.kit;
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
  const by = (id) => document.getElementById(id);
  // The page holds shares in ten-thousandths.
  const share = (v) => v / 10000;

  if (data.picture) {
    const { classes, label } = data.picture;
    const [old, fresh] = [data.picture.old, data.picture.new].map((of) => of.map((p) => p.map(share)));
    const points = label.flatMap((l, i) => [
      { x: old[i][0], y: old[i][1], name: classes[l], model: "old", symbol: "square", i, l },
      { x: fresh[i][0], y: fresh[i][1], name: classes[l], model: "new", symbol: "circle", i, l },
    ]);
    const links = label.map((l, i) => ({ x1: old[i][0], y1: old[i][1], x2: fresh[i][0], y2: fresh[i][1], l }));
    const cut = (name) => (name.length > 28 ? `${name.slice(0, 27)}…` : name);
    chart(by("picture"), `t-SNE of items of ${classes.join(", ")}: each twice, as embedded by the old and by the new model.`, (width) =>
      Plot.plot({
        width, height: Math.min(560, Math.max(320, width * 0.62)), style, margin: 6, inset: 12,
        x: { axis: null, domain: [0, 1] }, y: { axis: null, domain: [0, 1] },
        color: { domain: classes.map(cut), range: COLOURS, legend: true },
        marks: [
          Plot.frame({ stroke: "var(--line)" }),
          Plot.link(links, { x1: "x1", y1: "y1", x2: "x2", y2: "y2", stroke: (d) => cut(classes[d.l]), strokeOpacity: 0.18 }),
          Plot.dot(points.filter((p) => p.model === "old"), { x: "x", y: "y", stroke: (d) => cut(d.name), symbol: "square", r: 4, strokeWidth: 1.5 }),
          Plot.dot(points.filter((p) => p.model === "new"), { x: "x", y: "y", fill: (d) => cut(d.name), r: 4 }),
          Plot.tip(points, Plot.pointer({ x: "x", y: "y", title: (d) => `${d.name}\n${d.model} embedding` })),
        ],
        caption: "Open squares: embedded by the old model. Full circles: the same items by the new one. Thin lines join the two. Near each other is compatible.",
      }));
  }

  if (data.ordering) {
    const points = data.ordering.predicted.map((x, i) => ({ x: 100 * share(x), y: 100 * share(data.ordering.true[i]) }));
    chart(by("ordering"), `Predicted against true order of backfilling, Kendall's tau ${data.ordering.tau}.`, (width) =>
      Plot.plot({
        width, height: Math.min(460, width), style, marginLeft: 50, marginBottom: 42, grid: true,
        x: { domain: [0, 100], label: "predicted: backfilled after so many % of the items" },
        y: { domain: [0, 100], label: "by the true distance to the new vector, %" },
        marks: [
          Plot.line([[0, 0], [100, 100]], { strokeDasharray: "6,4" }),
          Plot.dot(points, { x: "x", y: "y", r: 2.2, fill: "var(--accent)", fillOpacity: 0.55 }),
        ],
      }));
  }

  const parts = Object.keys(data.curves || {});
  if (parts.length) {
    let redraw = () => {};
    const part = choice(by("losses"), "Part", parts.map((p) => [p, p]), () => redraw());
    part.value = parts[parts.length - 1];
    redraw = chart(by("losses"), () => `Training loss of ${part.value} by epoch.`, (width) => {
      const line = data.curves[part.value].map((y, i) => ({ x: i + 1, y })).filter((p) => p.y !== null);
      return Plot.plot({
        width, height: 260, style, marginLeft: 50, marginBottom: 42,
        x: { label: "epoch", ticks: line.length <= 8 ? line.map((p) => p.x) : 8, tickFormat: "d" },
        y: { label: "loss", grid: true, nice: true },
        marks: [
          Plot.line(line, { x: "x", y: "y", stroke: "var(--accent)", strokeWidth: 1.8 }),
          Plot.dot(line, { x: "x", y: "y", fill: "var(--accent)", r: 2.5 }),
          Plot.tip(line, Plot.pointerX({ x: "x", y: "y", title: (d) => `epoch ${d.x}: ${d.y}` })),
        ],
      });
    });
  }
})();
