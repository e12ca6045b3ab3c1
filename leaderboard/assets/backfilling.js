// Backfilling curves, and the matrix of a sequence of updates.
(() => {
  "use strict";
  const { data, colour, isLit, dash, sample, chart, tagged, choice, figure, style } = window.kit;
  const backfilling = data.backfilling;
  const SAMPLE = 38; // pixels of a sample of a line
  // Curves come as their first value and steps, in hundredths of a percent.
  const percent = (steps) => {
    let sum = 0;
    return steps.map((step) => (sum += step) / 100);
  };
  const box = document.getElementById("backfilling-charts");

  // ---- One method or order against the others, along the backfilling.
  function curves(parent) {
    const fig = figure(parent, "While the gallery is backfilled", true);
    const keys = Object.keys(backfilling.curves[backfilling.metrics[0].key]);
    const orders = [...new Set(Object.values(backfilling.curves[backfilling.metrics[0].key]).flatMap((o) => Object.keys(o)))];
    let redraw = () => {};
    const key = choice(fig, "Score", backfilling.metrics.map((m) => [m.key, m.label]), () => redraw());
    const view = choice(fig, "Compare", [
      ...orders.map((o) => [`order\n${o}`, `methods, order ${o}`]),
      ...keys.map((m) => [`method\n${m}`, `orders of ${m}`]),
    ], () => redraw());
    redraw = chart(fig, () => `${key.selectedOptions[0].text} while the gallery is backfilled: ${view.selectedOptions[0].text}. The areas are in the table below.`, (width, { passes }) => {
      const found = backfilling.curves[key.value] || {};
      const [kind, name] = view.value.split("\n");
      const lines = kind === "order"
        ? Object.entries(found).filter(([m, o]) => o[name] && (m === "independent" || passes(m))).map(([m, o]) => [m, percent(o[name]), m])
        : Object.entries(found[name] || {}).map(([o, line], i) => [o, percent(line), null, i]);
      if (!lines.length) return null;
      // Orders of one method: eight at most; the methods in colour are those of all plots.
      const palette = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => `var(--hue-${i})`);
      const named = ([label, , method, i]) => (method === null ? i < palette.length : isLit(label) || label === "independent");
      const look = (line) => (line[2] === null ? palette[line[3]] || "var(--rest)" : line[0] === "independent" ? "var(--ink)" : colour(line[0]));
      const dashed = ([label, , method]) => (method === null ? (backfilling.oracles.includes(label) ? "5,3" : undefined) : isLit(label) ? dash(label, 1.8) : undefined);
      lines.sort((a, b) => named(a) - named(b));
      const rows = lines.flatMap((line) => line[1].map((y, i, all) => ({ label: line[0], method: line[2], x: (100 * i) / (all.length - 1), y })));
      const area = (label) => {
        const id = kind === "order" ? `${label}\n${name}` : `${name}\n${label}`;
        const value = backfilling.areas[id] && backfilling.areas[id][key.value];
        return value === undefined || value === null ? "" : ` (area ${(100 * value).toFixed(1)})`;
      };
      const ends = backfilling.offline[key.value];
      const wait = ends ? [[0, 100 * ends.before], [100, 100 * ends.before], [100, 100 * ends.after]] : [];
      const last = lines.filter(named).map((line) => ({ label: `${line[0]}${area(line[0])}`, method: line[2], y: line[1][line[1].length - 1], mid: line[1][Math.floor(line[1].length / 2)], look: look(line) }));
      // Names stand at the right in the order of the curves' middles, evenly apart.
      last.sort((a, b) => b.mid - a.mid);
      // On a narrow screen they stand below the curves.
      const beside = width > 620;
      const right = beside ? 52 + 6.6 * Math.max(...last.map((l) => l.label.length)) : 16;
      const below = beside ? 0 : 19 * last.length + 14;
      const height = Math.max(340, 19 * last.length + 90) + below;
      return Plot.plot({
        width, height, style, marginLeft: 50, marginBottom: 42 + below, marginTop: 24, marginRight: right,
        color: { type: "identity" },
        x: { domain: [0, 100], label: "backfilled, % of the gallery" },
        y: { label: `${key.selectedOptions[0].text} (%)`, grid: true, nice: true },
        marks: [
          Plot.line(wait, { stroke: "var(--faint)", strokeDasharray: "2,3" }),
          ...lines.map((line) => Plot.line(rows.filter((r) => r.label === line[0]), {
            x: "x", y: "y", stroke: look(line), strokeWidth: named(line) ? 1.8 : 0.8,
            strokeDasharray: dashed(line),
            render: tagged(line[2] || line[0]),
          })),
          // A sample in the line's colour; words in that of all words, as some hues are too pale to read.
          ...last.flatMap((l, i) => [[l.method && isLit(l.method) ? sample(l.method) : "━━━", l.look, 0], [l.label, "currentColor", SAMPLE]].map(([text, fill, right]) => Plot.text([0], { ...(beside ? { frameAnchor: "top-right", dx: 10 + right, dy: 6 + 19 * i } : { frameAnchor: "bottom-left", dx: right, dy: 58 + 19 * i }), textAnchor: "start", text: () => text, fill, render: tagged(l.method || l.label.split(" (")[0]) }))),
          Plot.tip(rows, Plot.pointer({ x: "x", y: "y", title: (d) => `${d.label}\n${d.x.toFixed(0)} % backfilled: ${d.y.toFixed(1)}` })),
        ],
        caption: `${wait.length ? "Dotted: offline, the old model until all is backfilled. " : ""}${kind === "method" ? "Dashed: oracle orders, which sort by what only backfilling would tell." : ""}`,
      });
    });
  }

  // ---- How early each group's items are backfilled, and how its queries fare.
  function groups(parent) {
    const found = backfilling.groups;
    if (!found || found.names.length < 2) return;
    const fig = figure(parent, "Share of each group", true);
    let redraw = () => {};
    const methods = Object.keys(found.methods);
    const method = choice(fig, "Method", methods.map((m) => [m, m]), () => redraw());
    const orders = [...new Set(methods.flatMap((m) => Object.keys(found.methods[m])))];
    const order = choice(fig, "Order", orders.map((o) => [o, o]), () => redraw());
    redraw = chart(fig, () => `Share of each group along the ${order.value} order of ${method.value}.`, (width) => {
      const mine = found.methods[method.value][order.value];
      if (!mine) return Plot.plot({ width, height: 60, style, marks: [Plot.text(["not measured"], { frameAnchor: "middle" })] });
      const rows = found.names.map((name, i) => ({ name, share: mine[0][i], score: mine[1][i] })).filter((r) => r.share !== null);
      const left = Math.min(190, 20 + 7 * Math.max(...rows.map((r) => r.name.length)));
      return Plot.plot({
        width, height: 60 + 20 * rows.length, style, marginLeft: left, marginRight: 60, marginBottom: 42,
        x: { label: "mean share backfilled along the order", domain: [0, 1] },
        y: { label: null, domain: rows.map((r) => r.name) },
        marks: [
          Plot.barX(rows, { x: "share", y: "name", fill: "var(--accent)", opacity: 0.6 }),
          Plot.ruleX([0.5], { strokeDasharray: "4,3" }),
          Plot.text(rows, { x: "share", y: "name", dx: 4, textAnchor: "start", text: (d) => `${d.share.toFixed(2)}`, fill: "currentColor", stroke: "var(--card)", strokeWidth: 4 }),
          Plot.tip(rows, Plot.pointerY({ x: "share", y: "name", title: (d) => `${d.name}\nshare ${d.share.toFixed(2)}\nCMC@1 along the order ${d.score === null ? "none" : (100 * d.score).toFixed(1)}` })),
        ],
        caption: "0.5 where the order does not look at groups.",
      });
    });
  }

  // ---- A sequence: models of the queries down, of the gallery across.
  function matrix(parent) {
    const seq = data.sequence;
    const fig = figure(parent, "Every pair of generations", true);
    const keys = Object.keys(seq.scores);
    let redraw = () => {};
    const labels = new Map(data.metrics.map((m) => [m.key, m.label]));
    const key = choice(fig, "Score", keys.map((k) => [k, labels.get(k) || k]), () => redraw());
    const method = choice(fig, "Method", Object.keys(seq.scores[keys[0]]).map((m) => [m, m]), () => redraw());
    redraw = chart(fig, () => `Matrix of ${method.value}: queries of each generation in galleries of each earlier one. The table below has the numbers.`, (width) => {
      const rows = (seq.scores[key.value][method.value] || []).filter((r) => r[2] !== null);
      const own = new Map(rows.filter((r) => r[0] === r[1]).map((r) => [r[0], r[2]]));
      const cells = rows.filter((r) => !r[3]).map((r) => ({
        query: r[0], gallery: r[1], value: r[2], more: r[2] - (own.get(r[1]) ?? r[2]),
        direct: (rows.find((d) => d[3] && d[0] === r[0] && d[1] === r[1]) || [])[2],
      }));
      if (!cells.length) return null;
      const most = Math.max(0.02, ...cells.map((c) => Math.abs(c.more)));
      const n = seq.generations.length;
      const side = Math.min(width, 130 * n + 80);
      return Plot.plot({
        width: side, height: 66 * n + 70, style, marginLeft: 60, marginTop: 44, marginBottom: 10, padding: 0.06,
        x: { domain: seq.generations, label: "gallery", axis: "top" },
        y: { domain: seq.generations, label: "queries" },
        color: { type: "diverging", scheme: "PuOr", reverse: true, domain: [-most, most], pivot: 0 },
        marks: [
          Plot.cell(cells, { x: "gallery", y: "query", fill: "more", fillOpacity: 0.6 }),
          Plot.text(cells, { x: "gallery", y: "query", text: (d) => `${(100 * d.value).toFixed(1)}${d.direct === undefined ? "" : `\ndirect ${(100 * d.direct).toFixed(1)}`}`, fill: "#111", fontSize: 13, fontWeight: 600 }),
          Plot.tip(cells, Plot.pointer({ x: "gallery", y: "query", title: (d) => `queries ${d.query}, gallery ${d.gallery}: ${(100 * d.value).toFixed(1)}\n${d.more >= 0 ? "+" : ""}${(100 * d.more).toFixed(1)} over ${d.gallery}/${d.gallery}` })),
        ],
        caption: "Purple: better than the gallery's model by itself; orange: worse.",
      });
    });
  }

  if (box && backfilling) {
    box.className = "plots scripted";
    curves(box);
    groups(box);
  }
  const steps = document.getElementById("sequence");
  if (steps && data.sequence) matrix(steps);
})();
