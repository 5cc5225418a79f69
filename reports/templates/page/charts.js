// ---- the legend: hover or focus makes a timer stand out everywhere, a click hides it

const legend = document.querySelectorAll(".legend button");

function standOut(series) {
  for (const one of document.querySelectorAll("main [data-series]")) {
    one.classList.toggle("faint", series !== null && one.dataset.series !== series && !one.closest(".legend"));
    one.classList.toggle("out", one.dataset.series === series);
  }
}

for (const button of legend) {
  const { series } = button.dataset;
  for (const type of ["pointerenter", "focus"]) button.addEventListener(type, () => standOut(series));
  for (const type of ["pointerleave", "blur"]) button.addEventListener(type, () => standOut(null));
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    for (const one of document.querySelectorAll(`svg [data-series="${series}"], .table tr[data-series="${series}"]`)) {
      one.classList.toggle("gone", !shown);
    }
  });
}

// ---- values of the charts, by pointer and by arrow keys

const tip = document.getElementById("tip");
const NEAR = 24;  // CSS pixels

function middle(mark) {
  const box = mark.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}

function tell(mark, [x, y] = mark ? middle(mark) : []) {
  tip.hidden = !mark;
  if (!mark) return standOut(null);
  const { series = null, name, value } = mark.dataset;
  standOut(series);
  tip.replaceChildren(element("b", name ?? [...legend].find((one) => one.dataset.series === series).title), element("br"), value);
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(Math.min(x + 12, document.documentElement.clientWidth - width - 4), 4)}px`;
  tip.style.top = `${y - height - 10 < 0 ? y + 14 : y - height - 10}px`;
}

for (const chart of document.querySelectorAll(".chart")) {
  const marks = () => [...chart.querySelectorAll("[data-value]:not(.gone)")];
  let at = -1;
  chart.addEventListener("pointermove", (event) => {
    const point = [event.clientX, event.clientY];
    const far = (mark) => Math.hypot(...middle(mark).map((place, i) => place - point[i]));
    const near = marks().reduce((a, b) => (a && far(a) <= far(b) ? a : b), null);
    tell(event.target.closest("[data-value]") ?? (near && far(near) <= NEAR ? near : null), point);
  });
  for (const type of ["pointerleave", "blur"]) chart.addEventListener(type, () => tell(null));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const found = marks();
    if (event.key === "Escape") tell(null);
    if (!step || !found.length) return;
    event.preventDefault();
    at = at < 0 && step < 0 ? found.length - 1 : (at + step + found.length) % found.length;
    tell(found[at]);
  });
}

// ---- tables: the chosen columns, sorted

for (const card of document.querySelectorAll(".table")) {
  const [head, ...rows] = card.querySelectorAll("tr");
  const selects = [...card.querySelectorAll("select")];
  const choose = () => {
    const chosen = Object.fromEntries(selects.map((select) => [select.dataset.facet, select.value]));
    [...head.cells].forEach((heading, column) => {
      const parts = [...heading.querySelectorAll("span")];
      const wanted = parts.every((part) => !chosen[part.dataset.facet] || chosen[part.dataset.facet] === part.textContent);
      const open = parts.filter((part) => chosen[part.dataset.facet] === "");
      for (const part of parts) part.hidden = open.length > 0 && !open.includes(part);
      for (const row of [head, ...rows]) row.cells[column].hidden = !wanted;
    });
    // A row that has figures only in other columns is left out.
    for (const row of rows) row.hidden = [...row.cells].slice(1).every((cell) => cell.hidden || cell.textContent.replace("\u2060", "") === "–");
  };
  card.addEventListener("change", choose);
  choose();
  // A click anywhere in a heading sorts; the button inside is for the keyboard.
  [...head.cells].forEach((heading, column) => heading.addEventListener("click", () => {
    const upwards = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of head.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const number = (row) => { const text = key(row); return text === "inf" ? Infinity : Number(text); };
    const compare = (a, b) => {
      const [left, right] = [number(a), number(b)];
      if (Number.isNaN(left) || Number.isNaN(right)) return (upwards ? 1 : -1) * key(a).localeCompare(key(b));
      if (left === right) return 0;
      if (left === Infinity || right === Infinity) return left === Infinity ? 1 : -1;  // what was not measured comes last
      return upwards ? left - right : right - left;
    };
    rows.sort(compare).forEach((row) => row.parentNode.append(row));
  }));
}

// ---- folded sections: a link opens its section, and printing all of them

const unfold = () => document.getElementById(location.hash.slice(1))?.closest("details")?.setAttribute("open", "");
addEventListener("hashchange", unfold);
unfold();
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => { for (const details of folded) details.open = false; });
