// The heatmap: one group of scenarios at a time where there is little room; variants when asked for.
(() => {
  "use strict";
  for (const box of document.querySelectorAll(".heat-choice")) {
    const place = box.nextElementSibling;
    const table = place.querySelector("table.heat");
    const always = place.classList.contains("many");
    const select = box.querySelector("select");
    const show = () => {
      for (const cell of table.querySelectorAll("[data-part]")) {
        cell.classList.toggle("away", cell.dataset.part !== select.value);
      }
    };
    select.addEventListener("change", show);
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
