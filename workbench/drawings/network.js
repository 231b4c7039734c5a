// The published network for drawn symbols, as workbench/drawings/network.py has it: the same operations in the same order.

const LAYERS = [167, 500, 500, 378];
const [STROKES, POINTS] = [4, 20]; // of a drawing that the network sees

export function inputs(drawing) {
  const strokes = scaled(scaled(drawing).map(resampled));
  const lengths = strokes.map((stroke) => lengthsOf(stroke).at(-1));
  const values = new Float64Array(LAYERS[0]);
  strokes.slice(0, STROKES).forEach((stroke, j) => {
    values.set(stroke.flat(), j * POINTS * 2);
    const { sides } = boxOf([stroke]);
    values[STROKES * POINTS * 2 + j] = lengths[j] > 0 ? sides[1] / lengths[j] : 1;
  });
  const [width, height] = boxOf(strokes).sides;
  const ink = lengths.reduce((sum, length) => sum + length, 0);
  values.set([ink, strokes.length, (width + 0.01) / (height + 0.01)], STROKES * (POINTS * 2 + 1));
  return values;
}

function boxOf(strokes) {
  const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
  for (const stroke of strokes) for (const point of stroke) for (const axis of [0, 1]) {
    low[axis] = Math.min(low[axis], point[axis]);
    high[axis] = Math.max(high[axis], point[axis]);
  }
  return { low, sides: [high[0] - low[0], high[1] - low[1]] };
}

function scaled(strokes) {
  const { low, sides } = boxOf(strokes);
  const factors = sides.map((side) => (side > 0 ? 1 / side : 1));
  const factor = Math.min(...factors);
  const shift = [0, 0];
  shift[factor === factors[0] ? 1 : 0] = -(factor / (2 * Math.max(...factors)));
  return strokes.map((stroke) => stroke.map(([x, y]) => [(x - low[0]) * factor + shift[0], (y - low[1]) * factor + shift[1]]));
}

function lengthsOf(stroke) {
  const lengths = [0];
  for (let i = 1; i < stroke.length; i++) {
    const [dx, dy] = [stroke[i][0] - stroke[i - 1][0], stroke[i][1] - stroke[i - 1][1]];
    lengths.push(lengths[i - 1] + Math.sqrt(dx * dx + dy * dy));
  }
  return lengths;
}

function resampled(stroke) {
  const at = lengthsOf(stroke);
  if (at.at(-1) === 0) return Array.from({ length: POINTS }, () => stroke[0]);
  let before = 0;
  return Array.from({ length: POINTS }, (_, i) => {
    const wanted = (at.at(-1) * i) / (POINTS - 1);
    while (before < at.length - 2 && at[before + 1] <= wanted) before++;
    const gap = at[before + 1] - at[before];
    const share = gap > 0 ? (wanted - at[before]) / gap : 0;
    return [0, 1].map((axis) => stroke[before][axis] + share * (stroke[before + 1][axis] - stroke[before][axis]));
  });
}

// The layers, from the bytes of weights.f16: matrix and bias of each, one after the other in half precision.
export function layersOf(buffer) {
  const halves = new DataView(buffer);
  let start = 0;
  const read = (n) => Float32Array.from({ length: n }, () => half(halves.getUint16(2 * start++, true)));
  return LAYERS.slice(1).map((columns, j) => ({ columns, matrix: read(LAYERS[j] * columns), bias: read(columns) }));
}

function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return exponent === 0 ? sign * 2 ** -24 * fraction : sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

export function scores(layers, drawing) {
  let values = inputs(drawing);
  layers.forEach(({ columns, matrix, bias }, layer) => {
    const sums = Float64Array.from(bias);
    for (let i = 0, at = 0; i < values.length; i++, at += columns) {
      const value = values[i];
      if (value !== 0) for (let j = 0; j < columns; j++) sums[j] += value * matrix[at + j];
    }
    values = layer < layers.length - 1 ? sums.map((sum) => 1 / (1 + Math.exp(-sum))) : sums;
  });
  return values;
}

export function softmax(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

// LAC: the k-th largest probability of a meant symbol, k = ⌈(n + 1)·confidence⌉; null where k > n.
export function lac(ofMeant, confidence) {
  const k = rankOf(ofMeant.length, confidence);
  return k > ofMeant.length ? null : Float64Array.from(ofMeant).sort().at(-k);
}

// Confidence has two decimals, so that it is exact in hundredths.
export function rankOf(n, confidence) {
  return Math.ceil(((n + 1) * Math.round(100 * confidence)) / 100);
}

// Coverage of one fitted LAC is Beta(k, n + 1 − k): its quantile is where the Binomial(n, x) reaches k with that probability.
export function coverageQuantile(n, k, share) {
  let [low, high] = [0, 1];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (atLeast(k, n, middle) < share) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function atLeast(k, n, x) {
  let [sum, logChoose] = [0, 0];
  for (let i = 0; i <= n; i++) {
    if (i > 0) logChoose += Math.log((n - i + 1) / i);
    if (i >= k) sum += Math.exp(logChoose + i * Math.log(x) + (n - i) * Math.log1p(-x));
  }
  return sum;
}
