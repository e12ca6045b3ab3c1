// A board's charts: cross-test against self-test, score against cost, against the old model's quality.
(() => {
  "use strict";
  const { data, names, colour, isLit, lit, symbol, dash, chart, tagged, legend, choice, style } = window.kit;
  const by = (id) => document.getElementById(id);
  const at = (name) => data.columns.indexOf(name);
  const about = (key) => data.metrics.find((m) => m.key === key);
  const factor = (key) => (about(key).share ? 100 : 1);
  const print = (key, v) => (about(key).share ? v.toFixed(1) : v.toPrecision(3));

  // Points of one metric: self-test x, cross-test y, with intervals.
  function points(key) {
    const f = factor(key);
    const value = (row, name) => (row[at(name)] === null ? null : f * row[at(name)]);
    // An interval of fewer models than three would look sure.
    const end = (row, name) => (row[at("seeds")].split(" ").length < 3 ? null : value(row, name));
    return data.rows
      .filter((r) => r[at("metric")] === key && ["method", "independent"].includes(r[at("kind")]))
      .map((r) => ({
        method: r[at("method")],
        x: value(r, data.own), x1: end(r, `${data.own} low`), x2: end(r, `${data.own} high`),
        y: value(r, data.cross), y1: end(r, `${data.cross} low`), y2: end(r, `${data.cross} high`),
        rank: r[at("rank")], gain: r[at("gain")], row: r,
      }))
      .filter((p) => p.x !== null && p.y !== null);
  }
  const title = (p, key) =>
    `${p.method}${p.rank ? `, rank ${p.rank}` : ""}\ncross-test ${print(key, p.y)}\nself-test ${print(key, p.x)}` +
    (p.gain === null ? "" : `\ngain ${(100 * p.gain).toFixed(1)} %`);

  // Dots, of those in colour with names and intervals, shared by all three charts.
  function dots(all, x, y, key, titles) {
    const points = [...all].sort((a, b) => isLit(a.method) - isLit(b.method));
    const shown = lit().map((name) => all.find((p) => p.method === name)).filter(Boolean);
    const spans = (a, b) => shown.filter((p) => p[a] !== null && p[b] !== null && p[a] !== undefined);
    const down = spans("y1", "y2");
    const across = x === "x" ? spans("x1", "x2") : [];
    return [
      Plot.ruleX(down, { x, y1: "y1", y2: "y2", stroke: (d) => colour(d.method), strokeWidth: 1.3, strokeOpacity: 0.7, render: tagged(down.map((d) => d.method)) }),
      Plot.ruleY(across, { y, x1: "x1", x2: "x2", stroke: (d) => colour(d.method), strokeWidth: 1.3, strokeOpacity: 0.5, render: tagged(across.map((d) => d.method)) }),
      Plot.dot(points, { x, y, fill: (d) => colour(d.method), symbol: (d) => symbol(d.method), r: (d) => (isLit(d.method) ? 5 : 3.5), stroke: "var(--card)", strokeWidth: 1, render: tagged(points.map((p) => p.method)) }),
      Plot.text(shown, { x, y, text: "method", dy: -11, fill: "currentColor", stroke: "var(--card)", strokeWidth: 3, className: "names", render: tagged(shown.map((p) => p.method)) }),
      Plot.tip(points, Plot.pointer({ x, y, title: titles })),
    ];
  }
  const span = (values, room = 0.12) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const more = Math.max(high - low, 2) * room;
    return [low - more, high + more];
  };

  // Without values that lie far from the half in the middle: they would squeeze the rest.
  function core(values) {
    const [low, high] = [d3.quantile(values, 0.25), d3.quantile(values, 0.75)];
    return values.filter((v) => v >= low - 2 * (high - low) && v <= high + 2 * (high - low));
  }

  // Where the widest part of an axis begins that no span lies on.
  function gap(spans, [low, high]) {
    let [start, widest, end] = [low, 0, low];
    for (const [a, b] of [...spans.sort((p, q) => p[0] - q[0]), [high, high]]) {
      if (a - end > widest) [start, widest] = [end, a - end];
      end = Math.max(end, b);
    }
    return start;
  }

  // ---- Cross-test against self-test.
  chart(by("tradeoff"), () => `Cross-test against self-test of ${names.length} methods; the table above has the numbers.`, (width, { metric, passes }) => {
    const m = about(metric);
    const f = factor(metric);
    const all = points(metric).filter((p) => p.method !== "independent" && passes(p.method));
    if (!all.length) return null;
    all.sort((a, b) => (a.rank ?? 1e9) - (b.rank ?? 1e9));
    const lower = m.lower === null ? null : f * m.lower;
    const upper = m.upper === null ? null : f * m.upper;
    const shown = all.filter((p) => isLit(p.method));
    const xs = span([...core(all.map((p) => p.x)), ...shown.flatMap((p) => [p.x1 ?? p.x, p.x2 ?? p.x]), ...(upper === null ? [] : [upper])]);
    const ys = span([...core(all.map((p) => p.y)), ...shown.flatMap((p) => [p.y1 ?? p.y, p.y2 ?? p.y]), ...(lower === null ? [] : [lower])]);
    const inside = all.filter((p) => p.x >= xs[0] && p.x <= xs[1] && p.y >= ys[0] && p.y <= ys[1]);
    const front = m.front.map((name) => all.find((p) => p.method === name)).filter(Boolean);
    const edge = m.higher ? ys[1] : ys[0];
    const marks = [];
    if (lower !== null) {
      const near = inside.filter((p) => Math.abs(p.y - lower) < 0.12 * (ys[1] - ys[0]));
      const widest = gap(near.map((p) => [p.x1 ?? p.x, p.x2 ?? p.x]), xs);
      const late = widest - xs[0] > 0.6 * (xs[1] - xs[0]); // too near to the edge to begin there
      const [free, anchor] = late ? [xs[1], "end"] : [widest, "start"];
      marks.push(
        Plot.rect([0], { x1: xs[0], x2: xs[1], y1: lower, y2: edge, fill: "var(--good-shade)", opacity: 0.6 }),
        Plot.ruleY([lower], { strokeDasharray: "6,4" }),
        Plot.text([0], { x: free, y: lower, dx: late ? -6 : 6, dy: m.higher ? -9 : 9, textAnchor: anchor, text: () => `compatible beyond old/old ${print(metric, lower)}`, fill: "var(--faint)", className: "fixed" }),
      );
    }
    if (upper !== null) {
      marks.push(
        Plot.ruleX([upper], { strokeDasharray: "2,3" }),
        Plot.text([0], { x: upper, y: ys[0], dx: -6, dy: -8, textAnchor: "end", text: () => `upper bound ${print(metric, upper)}`, fill: "var(--faint)", className: "fixed" }),
      );
    }
    if (front.length > 1) {
      marks.push(Plot.line(front, { x: "x", y: "y", curve: m.higher ? "step-before" : "step-after", stroke: "var(--faint)", strokeWidth: 1, clip: true }));
    }
    const unit = m.share ? " (%)" : "";
    const out = all.length - inside.length;
    return Plot.plot({
      width, height: Math.min(480, Math.max(320, width * 0.55)), style, marginLeft: 50, marginBottom: 42, marginTop: 24, marginRight: 20,
      symbol: { type: "identity" }, color: { type: "identity" },
      x: { domain: xs, label: `self-test: ${m.label}, ${data.own}${unit}`, nice: false },
      y: { domain: ys, label: `cross-test: ${m.label}, ${data.cross}${unit}`, grid: true, nice: false },
      marks: [...marks, ...dots(inside, "x", "y", metric, (d) => title(d, metric))],
      caption: `${front.length > 1 ? "Thin line: Pareto front. " : ""}${all.some((p) => p.y1 !== null) ? "Bars: 95 % intervals of three models or more." : "No intervals: fewer than three models."}${out ? ` ${out} ${out === 1 ? "lies" : "lie"} outside of the picture; the table has ${out === 1 ? "it" : "them"}.` : ""}`,
    });
  });

  // ---- Score against cost.
  // Only what differs among methods says anything; what differs most in kind comes first.
  const spread = (key) => new Set(
    data.rows.filter((r) => r[at("kind")] === "method" && data.methods[r[at("method")]].ranked && r[at(key)] !== null).map((r) => r[at(key)]),
  ).size;
  const costs = data.costs.filter((c) => spread(c.key) > 1);
  const costFigure = by("cost");
  let redrawCost = () => {};
  const costSelect = costs.length
    ? choice(costFigure, "Cost", costs.map((c) => [c.key, c.label]), () => redrawCost())
    : null;
  if (!costs.length) costFigure.hidden = true;
  else redrawCost = chart(costFigure, () => `Score against ${costSelect.selectedOptions[0].text}; the table above has the numbers.`, (width, { metric, passes }) => {
    const key = costSelect.value;
    const m = about(metric);
    const all = points(metric)
      .filter((p) => p.method !== "independent" && data.methods[p.method].ranked && passes(p.method) && p.row[at(key)] !== null)
      .map((p) => ({ ...p, c: p.row[at(key)] }));
    if (!all.length) return null;
    const large = Math.max(...all.map((p) => p.c)) > 1000;
    const ends = [Math.min(...all.map((p) => p.c)) / 2, Math.max(...all.map((p) => p.c)) * 2];
    const powers = [0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10].filter((v) => v >= ends[0] && v <= ends[1]);
    const f = factor(metric);
    const lower = m.lower === null ? [] : [f * m.lower];
    return Plot.plot({
      width, height: 340, style, marginLeft: 50, marginBottom: 42, marginTop: 24, marginRight: 26,
      symbol: { type: "identity" }, color: { type: "identity" },
      x: large
        ? { type: "symlog", constant: 100, label: costSelect.selectedOptions[0].text, tickFormat: (v) => d3.format("~s")(v), ticks: powers.length > 1 ? powers : 4, domain: ends }
        : { label: costSelect.selectedOptions[0].text, nice: true, zero: true },
      y: { domain: span([...all.flatMap((p) => [p.y1 ?? p.y, p.y2 ?? p.y]), ...lower]), label: `cross-test: ${m.label}${m.share ? " (%)" : ""}`, grid: true },
      marks: [
        Plot.ruleY(lower, { strokeDasharray: "6,4" }),
        ...dots(all, "c", "y", metric, (d) => `${title(d, metric)}\n${costSelect.selectedOptions[0].text} ${d.c.toLocaleString("en")}`),
      ],
    });
  });

  // ---- Score against the quality of the old model: those of this board, and of other tracks.
  function oldModels(metric) {
    const shown = (r) => r[at("metric")] === metric && r[at("kind")] === "method" && data.methods[r[at("method")]].ranked && r[at(data.cross)] !== null;
    const scores = (rows) => Object.fromEntries(rows.filter(shown).map((r) => [r[at("method")], r[at(data.cross)]]));
    const current = data.quality.find((q) => q.current);
    return data.old_models.filter((old) => old.metrics[metric]).map((old) => ({
      label: old.label, data: current ? current.data : "",
      metrics: { [metric]: { lower: old.metrics[metric].lower, scores: scores(old.rows) } },
    }));
  }
  chart(by("quality"), "Cross-test of each method against the quality of the old model.", (width, { metric, passes }) => {
    const f = factor(metric);
    const own = oldModels(metric);
    const columns = [...own, ...data.quality.filter((q) => !q.current || !own.length)]
      .filter((q) => q.metrics[metric] && q.metrics[metric].lower !== null);
    if (columns.length < 2) return null;
    const all = columns.flatMap((q) =>
      Object.entries(q.metrics[metric].scores)
        .filter(([name]) => passes(name))
        .map(([method, score]) => ({ method, track: q.label, data: q.data, x: f * q.metrics[metric].lower, y: f * score })),
    );
    if (!all.length) return null;
    const names = [...new Set(all.map((p) => p.method))];
    const lines = names.flatMap((name) =>
      [...new Set(all.map((p) => p.data))].map((d) => [name, all.filter((p) => p.method === name && p.data === d).sort((a, b) => a.x - b.x)]),
    ).filter(([, line]) => line.length > 1);
    const tracks = columns.map((q) => ({ label: q.label, x: f * q.metrics[metric].lower }));
    const ends = span([...all.map((p) => p.x)], 0.15);
    const ys = span([...all.map((p) => p.y), ...tracks.map((t) => t.x)], 0.1);
    return Plot.plot({
      width, height: 340, style, marginLeft: 50, marginBottom: 42, marginTop: 36, marginRight: 26,
      symbol: { type: "identity" }, color: { type: "identity" },
      x: { domain: ends, label: `quality of the old model: ${about(metric).label}, old/old (%)` },
      y: { domain: ys, label: `cross-test: ${about(metric).label} (%)`, grid: true },
      marks: [
        Plot.line([[ends[0], ends[0]], [ends[1], ends[1]]], { strokeDasharray: "6,4", clip: true }),
        Plot.text(tracks, { x: "x", frameAnchor: "top", dy: -6, text: "label", fill: "var(--faint)", className: "names" }),
        ...[...lines].sort((a, b) => isLit(a[0]) - isLit(b[0])).map(([name, line]) => Plot.line(line, { x: "x", y: "y", stroke: colour(name), strokeWidth: isLit(name) ? 1.5 : 0.8, strokeDasharray: isLit(name) ? dash(name, 1.5) : undefined, render: tagged(name) })),
        Plot.text(lines.filter(([name]) => isLit(name)), { x: ([, line]) => line[line.length - 1].x, y: ([, line]) => line[line.length - 1].y, text: ([name]) => name, dx: 6, dy: -8, textAnchor: "end", fill: "currentColor", stroke: "var(--card)", strokeWidth: 3, className: "names" }),
        Plot.dot(all, { x: "x", y: "y", fill: (d) => colour(d.method), symbol: (d) => symbol(d.method), r: 4, render: tagged(all.map((p) => p.method)) }),
        Plot.tip(all, Plot.pointer({ x: "x", y: "y", title: (d) => `${d.method} on ${d.track}\nold/old ${d.x.toFixed(1)}\ncross-test ${d.y.toFixed(1)}` })),
      ],
      caption: "Above the dashed line a method beats the old model.",
    });
  });

  legend(by("legend"), names);
})();
