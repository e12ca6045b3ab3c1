// Two methods beside each other on every board that measured both; the address keeps which two.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("two");
  const out = document.getElementById("both");
  if (data.methods.length < 2) {
    form.hidden = true;
    return;
  }
  const make = (tag, parent, text, look) => {
    const element = parent.appendChild(document.createElement(tag));
    if (text !== undefined) element.textContent = text;
    if (look) element.className = look;
    return element;
  };
  for (const name of ["a", "b"]) for (const method of data.methods) make("option", form.elements[name], method).value = method;
  const signed = (n) => (n > 0 ? `+${n}` : `${n}`);

  function show() {
    const [a, b] = ["a", "b"].map((name) => form.elements[name].value);
    out.replaceChildren();
    const swapped = a > b;
    const found = data.differences[swapped ? `${b} ${a}` : `${a} ${b}`] || [];
    const rows = found.map((d, i) => d && { d: swapped ? d.map((n) => n === null ? null : -n) : d, i }).filter(Boolean);
    for (const row of rows) if (swapped) row.d = [row.d[0], row.d[2], row.d[1], row.d[3]];
    const told = (d) => (d[3] > 0 ? a : d[3] < 0 ? b : "");
    const wins = (name) => rows.filter((row) => told(row.d) === name).length;
    const open = rows.length - wins(a) - wins(b);
    make("p", out, a === b || !rows.length ? "No board measured both on three pairs of models."
      : `Of ${rows.length} boards ${a} keeps more on ${wins(a)}, ${b} on ${wins(b)}; on ${open} they cannot be told apart.`, "answer");
    if (a === b || !rows.length) return;
    const table = make("table", make("div", out, undefined, "scroll"), undefined, "flat");
    const head = make("tr", make("thead", table));
    for (const words of ["board", a, b, "difference, points", "keeps more"]) make("th", head, words).scope = "col";
    const body = make("tbody", table);
    for (const { d, i } of rows) {
      const line = make("tr", body);
      const name = make("th", line);
      name.scope = "row";
      const link = make("a", name, data.boards[i][1]);
      link.href = `boards/${data.boards[i][0]}.html`;
      make("td", line, data.shares[a][i]);
      make("td", line, data.shares[b][i]);
      make("td", line, `${signed(d[0])}${d[1] === null ? "" : ` (${signed(d[1])} to ${signed(d[2])})`}`);
      make("td", line, told(d) || "cannot be told");
      [...line.querySelectorAll("td")].forEach((td, i) => {
        td.dataset.label = [a, b, "difference", "keeps more"][i];
      });
    }
  }
  function recall() {
    const given = decodeURIComponent(location.hash.slice(1)).split("&");
    const known = given.length === 2 && given.every((m) => data.methods.includes(m));
    const [a, b] = known ? given : data.methods;
    Object.assign(form.elements.a, { value: a });
    Object.assign(form.elements.b, { value: b });
    show();
    if (known) form.scrollIntoView();
  }
  function chosen() {
    history.replaceState(null, "", `#${form.elements.a.value}&${form.elements.b.value}`);
    show();
  }
  form.addEventListener("change", chosen);
  for (const cell of document.querySelectorAll("a[data-a]")) {
    cell.addEventListener("click", (event) => {
      event.preventDefault();
      Object.assign(form.elements.a, { value: cell.dataset.a });
      Object.assign(form.elements.b, { value: cell.dataset.b });
      chosen();
      form.scrollIntoView();
    });
  }
  addEventListener("hashchange", recall);
  recall();
})();
