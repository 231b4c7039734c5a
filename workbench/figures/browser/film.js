// A film: a Plotly figure and its moves, each one property with its value at every place of a slider. Nothing is computed
// here: Python sends it once (`figures/film.py`), and it is played in the app, in lessons, on the static site and in a notebook.

// A move as it is sent, ready to be read at any place.
const readable = (item) => ({ ...item, at: reader(item.values), last: undefined });

// Write the values of a place into a figure that is not drawn yet.
function write({ data, layout }, moves, place) {
  for (const item of moves) {
    item.last = item.at(place);
    put(item.trace === null ? layout : data[item.trace], item.property, item.last);
  }
}

// Write a value at a path: "shapes[0].x1" is shapes, 0, x1.
function put(within, path, value) {
  const names = path.match(/\w+/g);
  const last = names.pop();
  names.reduce((inner, name) => (inner[name] ??= {}), within)[last] = value;
}

// The bars as they are, faintly, below those that move. They are gone when an axis changes, for then they would lie.
function ghostOf(picture) {
  return [...picture.querySelectorAll(".cartesianlayer .plot > .barlayer")].map((layer) => {
    const copy = layer.cloneNode(true);
    copy.setAttribute("class", "wb-ghost");
    layer.before(copy);
    return copy;
  });
}

// `Plotly.react` draws axes and legend again, which takes most of its time. Where only marks go elsewhere, an animation of
// no duration moves them alone.
const OF_MARKS = new Set(["x", "y", "customdata", "hovertext", "hovertemplate"]);
const AT_ONCE = { mode: "immediate", frame: { duration: 0, redraw: false }, transition: { duration: 0 } };
const OF_AXIS = /^([xy]axis\d*)\.(range|tickvals|ticktext)$/;
async function redraw(picture, moves, place, config, grown = null) {
  const Plotly = await plotly;
  const wide = new Set(); // axes that stay as wide as they are
  const changed = [];
  for (const item of moves) {
    let value = item.at(place);
    const [, axis, what] = (grown && item.trace === null && OF_AXIS.exec(item.property)) || [];
    if (what === "range" && item.last && holds(item.last, value)) wide.add(axis);
    if (wide.has(axis)) value = item.last;
    if (value === item.last) continue;
    if (what === "range") grown();
    item.last = value;
    changed.push(item);
  }
  const [ofTraces, ofLayout] = [changed.filter(({ trace }) => trace !== null), changed.filter(({ trace }) => trace === null)];
  if (!isQuick(picture, ofTraces, ofLayout)) {
    for (const { trace, property, last } of changed) put(trace === null ? picture.layout : picture.data[trace], property, last);
    return Plotly.react(picture, picture.data, picture.layout, config);
  }
  const traces = [...new Set(ofTraces.map(({ trace }) => trace))];
  const data = traces.map((number) => {
    const moving = ofTraces.filter(({ trace }) => trace === number);
    return Object.fromEntries(moving.map(({ property, last }) => [property, last]));
  });
  if (traces.length) await Plotly.animate(picture, { data, traces }, AT_ONCE);
  const inLayout = {};
  for (const { property, last } of ofLayout) setInLayout(picture.layout, inLayout, property, last);
  return Plotly.relayout(picture, inLayout);
}

// Whether one range of an axis holds another; an axis may run either way.
const holds = (one, other) => Math.min(...one) <= Math.min(...other) && Math.max(...one) >= Math.max(...other);

// Only marks go elsewhere, along axes that do not fit themselves to them. Of the traces of a type all move, or none, or the
// last lines: Plotly would change the order of the others.
function isQuick(picture, ofTraces, ofLayout) {
  if (ofTraces.some(({ property }) => !OF_MARKS.has(property))) return false;
  if (ofLayout.some(({ property }) => !OF_LISTS.test(property))) return false;
  const { _fullData: full, _fullLayout: axes } = picture;
  const fits = ({ trace, property: name }) => "xy".includes(name) && axes[`${name}axis${full[trace][`${name}axis`].slice(1)}`].autorange;
  if (ofTraces.some(fits)) return false;
  const moving = new Set(ofTraces.map(({ trace }) => trace));
  return ["bar", "scatter"].every((type) => {
    const moves = [...full.keys()].filter((number) => full[number].type === type).map((number) => moving.has(number));
    const first = moves.indexOf(true);
    return first < 0 || (moves.slice(first).every(Boolean) && (first === 0 || type === "scatter"));
  });
}

// What Plotly is still doing with a picture fails when the page moves on and takes the picture away; this is harmless.
function unlessGone(root, doing) {
  return Promise.resolve(doing).catch((error) => {
    if (root.isConnected) throw error;
  });
}

// Plotly is quick when it is given all shapes or all annotations anew; told of one property of one of them, it draws the
// whole figure again.
const OF_LISTS = /^(shapes|annotations)\[(\d+)\]\.(.+)$/;
function setInLayout(layout, changes, property, value) {
  const [, list, index, inner] = OF_LISTS.exec(property) ?? [];
  if (!list) return void (changes[property] = value);
  changes[list] ??= layout[list].map((item) => ({ ...item }));
  changes[list][index][inner] = value;
}

const NUMBERS = { u1: Uint8Array, u2: Uint16Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
const decoded = ({ dtype, bdata }) => new NUMBERS[dtype](Uint8Array.from(atob(bdata), (character) => character.charCodeAt(0)).buffer);

// All numbers of a matrix as Python sends it: whole, or its first line and, of each further one, the cells that are not as
// in the line before.
function numbersOf(sent) {
  const given = decoded(sent);
  if (!sent.changed) return given;
  const { cells, ends } = sent.changed;
  const [size, where] = [sent.shape.slice(1).reduce((product, side) => product * side, 1), decoded(cells)];
  const numbers = new NUMBERS[sent.dtype](sent.shape[0] * size);
  numbers.set(given.subarray(0, size));
  for (let line = 1, next = 0; line < sent.shape[0]; line += 1) {
    numbers.copyWithin(line * size, (line - 1) * size, line * size);
    for (; next < ends[line - 1]; next += 1) numbers[line * size + where[next]] = given[size + next];
  }
  return numbers;
}

// One value for every place: the lines of a matrix as plotly.py writes it, or of one matrix after the other; what lies between
// two ends of a long line; or a number in a list of distinct values.
function reader(sent) {
  const { shape, ends, distinct, at } = sent;
  if (distinct) return (place) => distinct[at[place]];
  const numbers = numbersOf(sent);
  if (ends) return (place) => numbers.subarray(ends[place - 1] ?? 0, ends[place]);
  const [lines, columns] = shape.length === 3 ? shape.slice(1) : [1, shape[1]];
  const line = (number) => numbers.subarray(number * columns, (number + 1) * columns);
  if (shape.length === 2) return line;
  return (place) => Array.from({ length: lines }, (_, number) => line(place * lines + number));
}

// A point that was clicked, for Python: the name of its trace, its number there, and what it carries.
function pointOf(picture, { curveNumber, pointNumber: point, customdata = null }) {
  const trace = picture.data[curveNumber].name ?? null;
  return { trace, point, data: ArrayBuffer.isView(customdata) ? Array.from(customdata) : customdata };
}

// Tells of a size that is another than now: an observer of its own also tells of the first one.
function onResize(element, changed) {
  const size = () => `${element.clientWidth} ${element.clientHeight}`;
  let before = size();
  const observer = new ResizeObserver(() => {
    if (size() === before) return;
    before = size();
    changed();
  });
  observer.observe(element);
  return observer;
}
