// Figures with their units, as in the tables.
const UNKNOWN = "–";
const isKnown = (value) => value !== null && value !== undefined;

function times(value) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  return `${value < 0.1 ? value.toPrecision(2) : value.toFixed(value < 100 ? 2 : 0)}×`;
}

function microseconds(value) {
  if (!isKnown(value)) {
    return UNKNOWN;
  }
  return value >= 10000 ? `${Number((value / 1000).toPrecision(4))} ms`
    : `${value < 100 ? Number(value.toPrecision(3)) : value.toFixed(0)} µs`;
}

const percent = (value) => (isKnown(value) ? `${Number((100 * value).toPrecision(3))} %` : UNKNOWN);

function figure(value) {
  if (typeof value !== "number") {
    return isKnown(value) ? String(value) : UNKNOWN;
  }
  return value !== 0 && Math.abs(value) < 0.01 ? value.toExponential(2)
    : Number(value.toPrecision(3)).toLocaleString("en");
}

const between = (pair, unit) => (pair ? `${unit(pair[0])} to ${unit(pair[1])}` : "no interval");
