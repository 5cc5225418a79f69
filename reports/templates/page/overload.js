// ---- overload: lateness at the reader's rate

/** Lateness in milliseconds at a rate: that of the nearest load which was measured and is not below. */
function lateness({ capacity, loads, failure }, rate) {
  if (failure) return { said: `not measured: it ${failure}` };
  const share = rate / capacity;
  const load = Object.keys(loads).map(Number).sort((a, b) => a - b).find((each) => each * capacity >= 100 * rate);
  if (rate > capacity) return { share, said: `beyond its capacity: falls behind by ${significant(rate - capacity)} per second` };
  if (load === undefined) return { share, said: "not measured at this load" };
  return { share, load, late: loads[load] };
}

function showLoad(rate) {
  const shown = document.getElementById("lateness");
  if (!(rate > 0)) return shown.replaceChildren(element("caption", "Enter a rate above 0."));
  const number = { class: "number" };
  const headings = ["contender", "your load", "measured at", "p50 [ms]", "p99 [ms]", "p99.9 [ms]", "capacity [1/s]"];
  const rows = data.overload.map((contender) => {
    const { share, load, late, said } = lateness(contender, rate);
    const row = element("tr", element("th", contender.name, { scope: "row" }));
    const cells = said ? [] : [load > 100 ? `${load}\u00a0%, beyond capacity` : `${load}\u00a0%`, ...late.map((ms) => ms === null ? "–" : significant(ms))];
    row.append(
      element("td", share ? percent(share) : "–", number),
      ...(said ? [element("td", said, { colspan: 4 })] : cells.map((cell) => element("td", cell, number))),
      element("td", contender.capacity ? significant(contender.capacity) : "–", number),
    );
    return row;
  });
  const head = element("tr", headings.map((heading, i) => element("th", heading, i ? { scope: "col", ...number } : { scope: "col" })));
  shown.replaceChildren(element("thead", head), element("tbody", rows));
}

/** Take the rate over from the answer's controls; the reader may then enter another. */
function startLoad(form) {
  const load = document.getElementById("load");
  if (!load) return;
  load.rate.value = data.cases[form.traffic]?.started || form.rate || 1000;
  showLoad(load.rate.valueAsNumber);
}

document.getElementById("load")?.addEventListener("input", ({ target }) => showLoad(target.valueAsNumber));
document.getElementById("load")?.addEventListener("submit", (event) => event.preventDefault());

function startCase() {
  const settings = new Settings(document.getElementById("case"), (values, wrong) => {
    show(values, wrong);
    if (wrong) return;
    showTuning(values);
    startLoad(values);
  });
  startTuning(settings);
  settings.start();
}

if (document.getElementById("case")) startCase();
else startLoad({});
