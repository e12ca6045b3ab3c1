// The heatmap: a group of scenarios at a time where not all have room, a part of it on a narrow
// screen; variants when asked for.
(() => {
  "use strict";
  for (const box of document.querySelectorAll(".heat-choice")) {
    const place = box.nextElementSibling;
    const table = place.querySelector("table.heat");
    const always = place.classList.contains("many");
    const select = box.querySelector("select");
    const options = [...select.options];
    const words = options.map((option) => option.textContent);
    const first = options.map((option) => options.findIndex((o) => o.dataset.group === option.dataset.group));
    const wide = matchMedia("(min-width: 76.01rem)");
    const show = () => {
      const place = wide.matches ? first : [...options.keys()];
      select.value = place[select.value];
      options.forEach((option, i) => {
        option.hidden = place[i] !== i;
        option.textContent = wide.matches ? option.dataset.group : words[i];
      });
      for (const cell of table.querySelectorAll("[data-part]")) {
        cell.classList.toggle("away", place[cell.dataset.part] !== Number(select.value));
      }
    };
    select.addEventListener("change", show);
    wide.addEventListener("change", show);
    show();
    // How wide the heads make it nobody knows before it is drawn.
    const fit = () => {
      place.classList.toggle("many", always);
      const many = always || table.offsetWidth > place.clientWidth + 1;
      place.classList.toggle("many", many);
      box.classList.toggle("always", many);
    };
    fit();
    addEventListener("load", fit);
    addEventListener("resize", fit);
  }
  const variants = document.getElementById("variants");
  if (!variants) return;
  const fold = () => {
    for (const row of document.querySelectorAll("table.heat tr.variant")) row.hidden = !variants.checked;
  };
  variants.addEventListener("change", fold);
  fold();
})();
