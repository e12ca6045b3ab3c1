// Faults of a page's layout: text that is cut or leaves the page, boxes of text that meet, boards as cards.
() => {
  const shown = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  // Words for a screen reader alone.
  const unseen = (e) => {
    for (let box = e; box; box = box.parentElement) {
      const style = getComputedStyle(box);
      if (style.clipPath !== "none" || style.position === "absolute" && box.offsetWidth <= 1) return true;
      if (box.classList && box.classList.contains("skip")) return true;
      if (box.tagName === "DETAILS" && !box.open && !e.closest("summary")) return true;
    }
    return false;
  };
  const cut = (e, r) => {
    for (let box = e; box && box !== document.documentElement; box = box.parentElement) {
      const style = getComputedStyle(box);
      if (style.overflowX === "visible" || box.tagName === "svg" || box.closest("svg") && box.tagName !== "svg") continue;
      const b = box.getBoundingClientRect();
      if (r.right > b.right + 2 || r.left < b.left - 2) return true;
    }
    return r.right > innerWidth + 1 || r.left < -1;
  };
  const words = (t) => t.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [], faults = [];
  for (let t = walker.nextNode(); t; t = walker.nextNode()) {
    const e = t.parentElement;
    if (!t.textContent.trim() || e.closest("script, style, noscript, select, option, datalist, [popover]") || !shown(e) || unseen(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(t);
    for (const r of range.getClientRects()) {
      if (r.width < 2 || r.height < 2) continue;
      if (cut(e, r)) faults.push(`cut: ${words(t)}`);
      // Letters fill the middle of a line.
      const rim = r.height * 0.25;
      boxes.push({ t, e, left: r.left + 1.5, right: r.right - 1.5, top: r.top + rim, bottom: r.bottom - rim });
    }
  }
  const fixed = (e) => Boolean(e.closest(".top"));
  boxes.sort((a, b) => a.top - b.top);
  boxes.forEach((a, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom; j++) {
      const b = boxes[j];
      if (a.t === b.t || fixed(a.e) !== fixed(b.e)) continue;
      if (a.left < b.right && b.left < a.right) faults.push(`on each other: ${words(a.t)} | ${words(b.t)}`);
    }
  });
  if (document.documentElement.scrollWidth > innerWidth + 1) faults.push(`wide: ${document.documentElement.scrollWidth}`);
  const ranking = [...document.querySelectorAll("table.ranking")].filter(shown);
  if (innerWidth >= 1024 && ranking.some((t) => t.classList.contains("as-cards"))) faults.push("a board is no table");
  // On a phone each method of a board is a card.
  const high = document.documentElement.scrollHeight;
  if (high > 14000) faults.push(`high: ${high}`);
  return [...new Set(faults)];
}
