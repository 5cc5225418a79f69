// ---- which of several timers to use: the rule of compare/trial/advice/choice.py

/** Whether a timer fires within what another one allows. */
function precise(timer, limit) {
  const comparable = timer.unit === limit.unit || (timer.low === 0 && timer.high === 0);
  return comparable && timer.low >= limit.low && timer.high <= limit.high;
}

/**
 * The offer to take. Each has its cost, `noise` from low to high, and what it is; `enough` is a cost
 * that decides nothing, 0 where the rate is not known. A host is kept within data.enough.host.
 */
function choose(offers, enough) {
  const byCost = [...offers].sort((a, b) => a.cost[0] - b.cost[0]);
  const [cheapest] = byCost;
  const limit = (offer) => offer.host ? data.enough.host * CORE : enough;
  let left = byCost.filter((offer) => offer.noise[0] <= cheapest.noise[1] || offer.cost[0] - cheapest.cost[0] <= limit(offer));
  const near = left.length, reasons = [];
  const preferences = {
    "is what the program has": (offer) => offer.host,
    "is exact": (offer) => offer.timer.exact,
    "takes the least memory": (offer) => offer.memory === null || offer.memory <= data.near * Math.min(...left.map((other) => other.memory ?? Infinity)),
    "has default parameters": (offer) => offer.timer.default,
    "is the usual choice": (offer) => offer.timer.usual,
  };
  for (const [reason, speaksFor] of Object.entries(preferences)) {
    const preferred = left.filter(speaksFor);
    if (preferred.length && preferred.length < left.length) {
      left = preferred;
      if (!left.includes(cheapest)) reasons.push(reason);
    }
  }
  return { chosen: left[0], cheapest, near, reasons };
}

/** The chosen offer, and those that were cheaper in some round of samples, or nearly. */
const rivalsOf = (ranking, chosen) => ranking.filter((offer) => offer === chosen || offer.rounds.some((cost, k) => data.worse * chosen.rounds[k] > cost));

/** Whether the chosen offer was right in most rounds of samples; `enough` is a cost that decides nothing. */
function isDecided(offers, chosen, enough) {
  const rounds = Math.min(...offers.map((offer) => offer.rounds.length));
  const right = Array.from({ length: rounds }, (_, k) => {
    const least = Math.min(...offers.map((offer) => offer.rounds[k])), more = chosen.rounds[k];
    return more <= data.worse * least || more - least <= enough;
  });
  return right.filter(Boolean).length >= data.mostly * rounds;
}
