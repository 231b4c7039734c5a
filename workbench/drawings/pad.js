// A pad to draw a symbol on, and the set of symbols that it may be. Stands after network.js.

const SIDE = 300; // of the pad, in the units of a drawing
const ENOUGH = 20; // drawings before a promise is made
const SHOWN = 12; // symbols, at least; the set may hold more
const BAND = 0.9;
const RULES = [
  { name: "K", label: "K", meaning: "number of symbols", low: 1, high: 20, step: 1, value: 4, read: (v) => v, show: (v) => `${v}` },
  {
    name: "threshold", label: "Threshold λ", meaning: "smallest probability in the set",
    low: 0, high: 90, step: 1, value: 40, read: (v) => 10 ** (-3 + v / 30), show: (v) => v.toPrecision(2),
  },
  {
    name: "confidence", label: "Promised coverage 1\u00a0−\u00a0α", meaning: "share of new drawings whose set contains the symbol",
    low: 50, high: 99, step: 1, value: 90, read: (v) => v / 100, show: (v) => `${Math.round(100 * v)} %`,
  },
];
const EXAMPLES = { Circle: [circle()], Cross: [line(0, 0, 1, 1), line(1, 0, 0, 1)], Bar: [line(0, 0.5, 1, 0.5)], Sum: [zigzag()] };

function circle() {
  return Array.from({ length: 41 }, (_, i) => [0.5 - Math.sin((i / 20) * Math.PI) / 2, 0.5 - Math.cos((i / 20) * Math.PI) / 2]);
}
function line(x, y, toX, toY) {
  return Array.from({ length: 11 }, (_, i) => [x + ((toX - x) * i) / 10, y + ((toY - y) * i) / 10]);
}
function zigzag() {
  return [line(0.95, 0, 0.05, 0), line(0.05, 0, 0.55, 0.5), line(0.55, 0.5, 0.05, 1), line(0.05, 1, 0.95, 1)].flat();
}

// `data` has `weights` and `symbols`, or addresses to read them from, and `opens` where drawings can be opened elsewhere.
export default function ({ data, parentElement, setTriggerValue }) {
  if (parentElement.pad) {
    parentElement.pad.tell = setTriggerValue;
    return;
  }
  const pad = { tell: setTriggerValue, drawing: [], rule: "threshold", cards: [] };
  parentElement.pad = pad;
  const root = element(parentElement, "div", "wb-live wb-pad");
  build(root, pad, data);
  read(data).then(
    ({ layers, symbols }) => {
      Object.assign(pad, { layers, symbols, room: restored(symbols) });
      rescore(pad);
      pad.names.replaceChildren(...symbols.map(({ latex, character }) => new Option(character, latex)));
      pad.draw();
      root.dataset.ready = "true";
    },
    (error) => (pad.answer.textContent = `The network could not be read: ${error.message}`),
  );
  return () => {
    root.remove();
    delete parentElement.pad;
  };
}

async function read({ weights, symbols }) {
  const fetched = async (address) => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address} answered ${answer.status}`);
    return answer;
  };
  const bytes = weights.base64
    ? Uint8Array.from(atob(weights.base64), (letter) => letter.charCodeAt(0)).buffer
    : await (await fetched(weights)).arrayBuffer();
  return { layers: layersOf(bytes), symbols: Array.isArray(symbols) ? symbols : await (await fetched(symbols)).json() };
}

function element(parent, tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  parent.append(made);
  return made;
}

function button(parent, text, press, className = "") {
  const made = element(parent, "button", className, text);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

function vector(parent, tag, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
}

function glyph(parent, { path, box: [x, y, width, height], latex }) {
  const side = Math.max(width, height, 60) + 10;
  const view = [x + width / 2 - side / 2, y + height / 2 - side / 2, side, side].join(" ");
  vector(vector(parent, "svg", { viewBox: view, class: "wb-glyph", role: "img", "aria-label": latex }), "path", { d: path });
}

function strokePaths(drawing) {
  return drawing.map((stroke) => `M${stroke.map((point) => point.join(" ")).join("L")}${stroke.length === 1 ? "l0 0" : ""}`).join("");
}

function build(root, pad, data) {
  const left = element(root, "div", "wb-pad-left");
  pad.surface = vector(left, "svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "wb-pad-surface", role: "img", "aria-label": "Pad to draw a symbol on" });
  pad.hint = vector(pad.surface, "text", { x: SIDE / 2, y: SIDE / 2, "text-anchor": "middle" });
  pad.hint.textContent = "Draw a symbol here";
  pad.ink = vector(pad.surface, "path");
  drawable(pad);
  const tools = element(left, "div", "wb-pad-tools");
  pad.undo = button(tools, "Undo stroke", () => change(pad, pad.drawing.slice(0, -1)));
  pad.clear = button(tools, "Clear", () => change(pad, []));
  const tries = element(left, "div", "wb-pad-tools");
  element(tries, "span", "", "Or try:");
  for (const [name, strokes] of Object.entries(EXAMPLES)) button(tries, name, () => change(pad, placed(strokes)));
  element(left, "p", "wb-pad-told", "The network sees how the pen moved, not only the picture: begin a circle at its top, anticlockwise.");

  const right = element(root, "div", "wb-pad-right");
  const rules = element(right, "div", "wb-pad-rules");
  pad.rules = RULES.map((rule) => slider(rules, rule, pad));
  pad.answer = element(right, "p", "wb-pad-answer");
  pad.answer.setAttribute("aria-live", "polite");
  pad.set = element(right, "ol", "wb-pad-set");
  meaning(right, pad);
  room(element(root, "section", "wb-pad-room"), pad, data);
  pad.draw = () => draw(pad);
}

function placed(strokes) {
  return strokes.map((stroke) => stroke.map(([x, y]) => [rounded(60 + 180 * x), rounded(60 + 180 * y)]));
}

function rounded(number) {
  return Math.round(10 * number) / 10;
}

// Pointers of any kind. What leaves the pad stays at its edge: the network sees what a person sees.
function drawable(pad) {
  const { surface } = pad;
  let frame = null;
  const at = ({ clientX, clientY }) => {
    const box = surface.getBoundingClientRect();
    const inside = (share) => rounded(SIDE * Math.min(1, Math.max(0, share)));
    return [inside((clientX - box.left) / box.width), inside((clientY - box.top) / box.height)];
  };
  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || pad.pointer !== undefined) return;
    event.preventDefault();
    surface.setPointerCapture(event.pointerId);
    pad.pointer = event.pointerId;
    change(pad, [...pad.drawing, [at(event)]]);
  });
  surface.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pad.pointer) return;
    const stroke = pad.drawing.at(-1);
    for (const each of event.getCoalescedEvents?.() ?? [event]) stroke.push(at(each));
    frame ??= requestAnimationFrame(() => {
      frame = null;
      pad.draw();
    });
  });
  for (const end of ["pointerup", "pointercancel"]) surface.addEventListener(end, (event) => {
    if (event.pointerId !== pad.pointer) return;
    pad.pointer = undefined;
    pad.draw();
  });
}

function change(pad, drawing) {
  pad.drawing = drawing;
  pad.draw();
}

function slider(parent, rule, pad) {
  const box = element(parent, "label", "wb-pad-rule");
  box.title = rule.meaning;
  element(box, "span", "", rule.label);
  const output = element(box, "output");
  const input = element(box, "input");
  Object.assign(input, { type: "range", min: rule.low, max: rule.high, step: rule.step, value: rule.value, name: rule.name });
  input.setAttribute("aria-description", rule.meaning);
  const choose = () => {
    pad.rule = rule.name;
    pad.draw();
  };
  input.addEventListener("input", choose);
  input.addEventListener("click", choose); // also where it stands already
  return { ...rule, box, input, output };
}

function meaning(parent, pad) {
  const form = element(parent, "form", "wb-pad-meaning");
  const label = element(form, "label", "", "You meant another one: ");
  const input = element(label, "input");
  pad.names = element(form, "datalist");
  pad.names.id = `wb-symbols-${Math.random().toString(36).slice(2)}`;
  Object.assign(input, { type: "text", placeholder: "\\alpha or α", size: 12 });
  input.setAttribute("list", pad.names.id);
  const add = element(form, "button", "", "Add to the room");
  add.type = "submit";
  pad.unknown = element(form, "span", "wb-pad-unknown");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const meant = pad.symbols?.findIndex(({ latex, character }) => [latex, character].includes(input.value.trim()));
    pad.unknown.textContent = meant >= 0 ? "" : `The network does not know ${input.value.trim() || "an empty name"}; give one of its 378 symbols.`;
    if (!(meant >= 0) || pad.drawing.length === 0) return;
    input.value = "";
    join(pad, meant);
  });
  pad.form = form;
}

// The room: drawings with the symbol that was meant.
function room(root, pad, data) {
  element(root, "h3", "", "The room is the calibration set");
  pad.promise = element(root, "p", "wb-pad-promise");
  const tools = element(root, "div", "wb-pad-tools");
  pad.save = button(tools, "Export (CSV)", () => download(tableOf(pad)));
  const open = element(tools, "label", "wb-pad-file", "Import");
  const file = element(open, "input");
  Object.assign(file, { type: "file", accept: ".csv" });
  file.addEventListener("change", async () => {
    pad.noted.textContent = bring(pad, await file.files[0].text());
    file.value = "";
    pad.draw();
  });
  pad.forget = button(tools, "Empty the room", () => settle(pad, []));
  if (data.opens) pad.open = button(tools, "Open in every view", () => pad.tell("opened", tableOf(pad)));
  pad.noted = element(root, "p", "wb-pad-noted");
  pad.noted.setAttribute("role", "status");
  pad.wall = element(root, "ol", "wb-pad-wall");
}

const KEPT = "workbench drawings";

function restored(symbols) {
  try {
    return (JSON.parse(localStorage.getItem(KEPT)) ?? []).filter(({ meant, strokes }) => symbols[meant] && valid(strokes));
  } catch {
    return []; // nothing was kept, or this browser keeps nothing
  }
}

function settle(pad, drawings) {
  pad.room = drawings;
  rescore(pad);
  try {
    localStorage.setItem(KEPT, JSON.stringify(drawings.map(({ meant, strokes }) => ({ meant, strokes }))));
  } catch {
    pad.noted.textContent = "This browser keeps nothing: export the drawings before you leave.";
  }
  pad.draw();
}

function join(pad, meant) {
  const strokes = pad.drawing;
  pad.drawing = [];
  settle(pad, [...pad.room, { meant, strokes }]);
}

function rescore(pad) {
  for (const each of pad.room) each.probability ??= softmax(scores(pad.layers, each.strokes))[each.meant];
}

function valid(strokes) {
  const point = (each) => Array.isArray(each) && each.length === 2 && each.every(Number.isFinite);
  return Array.isArray(strokes) && strokes.length > 0 && strokes.every((stroke) => Array.isArray(stroke) && stroke.length > 0 && stroke.every(point));
}

function draw(pad) {
  pad.ink.setAttribute("d", strokePaths(pad.drawing));
  pad.hint.style.display = pad.drawing.length ? "none" : "";
  pad.undo.disabled = pad.clear.disabled = pad.drawing.length === 0;
  if (!pad.layers) return;
  const fitted = pad.room.length >= ENOUGH;
  if (pad.rule === "confidence" && !fitted) pad.rule = "threshold";
  for (const rule of pad.rules) {
    rule.box.classList.toggle("wb-held", rule.name === pad.rule);
    rule.output.textContent = rule.show(rule.read(Number(rule.input.value)));
    rule.input.disabled = rule.name === "confidence" && !fitted;
    rule.box.title = rule.input.disabled ? `needs ${ENOUGH} drawings with the symbol that was meant` : rule.meaning;
  }
  const threshold = thresholdOf(pad);
  drawSet(pad, threshold);
  drawRoom(pad);
  follow(pad, threshold);
}

// The sliders that do not lead show what the leading one comes to: the size of this set, the fitted threshold.
function follow(pad, threshold) {
  const [K, lambda] = pad.rules;
  if (pad.rule !== "K" && pad.set.dataset.size) {
    K.input.value = pad.set.dataset.size;
    K.output.textContent = pad.set.dataset.size;
  }
  if (pad.rule !== "confidence") return;
  lambda.input.value = threshold > 0 ? 90 + 30 * Math.log10(threshold) : 0;
  lambda.output.textContent = lambda.show(threshold);
}

function valueOf(pad, name) {
  const rule = pad.rules.find((each) => each.name === name);
  return rule.read(Number(rule.input.value));
}

// One threshold for every drawing; of K symbols there is none.
function thresholdOf(pad) {
  if (pad.rule === "K") return null;
  if (pad.rule === "threshold") return valueOf(pad, "threshold");
  return lac(pad.room.map(({ probability }) => probability), valueOf(pad, "confidence")) ?? 0;
}

function drawSet(pad, threshold) {
  pad.form.hidden = pad.drawing.length === 0;
  if (pad.drawing.length === 0) {
    pad.set.replaceChildren();
    pad.answer.textContent = "The set of symbols that the drawing may be appears here, at every stroke.";
    delete pad.set.dataset.size;
    return;
  }
  const answered = scores(pad.layers, pad.drawing);
  const probabilities = softmax(answered);
  const order = Array.from(probabilities.keys()).sort((a, b) => answered[b] - answered[a] || a - b);
  const size = threshold === null ? valueOf(pad, "K") : order.filter((j) => probabilities[j] >= threshold).length;
  pad.scores = answered;
  pad.set.dataset.size = size;
  pad.set.replaceChildren(...order.slice(0, Math.max(SHOWN, Math.min(size, 60))).map((j, rank) => card(pad, j, probabilities[j], rank < size)));
  const mass = order.slice(0, size).reduce((sum, j) => sum + probabilities[j], 0);
  const many = pad.drawing.length > 4 ? ` The network reads the first 4 of ${pad.drawing.length} strokes, and how many there are.` : "";
  pad.answer.textContent = size === 0
    ? `No symbol is probable enough: the set is empty.${many}`
    : `A set of ${size} ${size === 1 ? "symbol" : "symbols"}, ${percent(mass)} of the probability. Click the one you meant.${many}`;
}

// The card of a symbol is made once: what changes with a stroke is its share, and where it stands.
function card(pad, j, probability, inSet) {
  const { item, share, bar } = (pad.cards[j] ??= emptyCard(pad, j));
  item.className = inSet ? "wb-in" : "wb-out";
  share.textContent = percent(probability);
  bar.style.width = `${100 * probability}%`;
  return item;
}

function emptyCard(pad, j) {
  const item = document.createElement("li");
  const choice = button(item, "", () => join(pad, j));
  const symbol = pad.symbols[j];
  choice.title = `I meant ${symbol.latex}`;
  glyph(choice, symbol);
  const share = element(choice, "span", "wb-pad-share");
  const bar = element(choice, "span", "wb-pad-bar");
  element(choice, "code", "", symbol.latex);
  return { item, share, bar };
}

function percent(share) {
  return share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`;
}

function drawRoom(pad) {
  const { room } = pad;
  pad.promise.textContent = promiseOf(pad);
  pad.save.disabled = pad.forget.disabled = room.length === 0;
  if (pad.open) pad.open.disabled = room.length < 2;
  if (pad.walled === room) return;
  pad.walled = room;
  pad.wall.replaceChildren(...room.map((each, number) => {
    const item = document.createElement("li");
    const view = vector(item, "svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "wb-pad-small", role: "img", "aria-label": `drawing ${number + 1}` });
    vector(view, "path", { d: strokePaths(each.strokes) });
    glyph(item, pad.symbols[each.meant]);
    button(item, "×", () => settle(pad, room.filter((other) => other !== each)), "wb-pad-remove").setAttribute("aria-label", `Remove drawing ${number + 1}, ${pad.symbols[each.meant].latex}`);
    return item;
  }));
}

function promiseOf(pad) {
  const n = pad.room.length;
  const count = `${n} ${n === 1 ? "drawing" : "drawings"} with the symbol that was meant`;
  if (n < ENOUGH) return `${count}. From ${ENOUGH} on, the page fits LAC on them and makes a promise.`;
  const confidence = valueOf(pad, "confidence");
  const k = rankOf(n, confidence);
  const promised = percent(confidence);
  if (k > n) return `${count}. ${promised} is more than ${n} drawings can promise: every symbol would be in the set. Draw more, or promise less.`;
  const threshold = lac(pad.room.map(({ probability }) => probability), confidence);
  const [low, high] = [(1 - BAND) / 2, (1 + BAND) / 2].map((share) => percent(coverageQuantile(n, k, share)));
  return `${count}. LAC fitted on them: λ = ${threshold.toPrecision(2)}. The set of a new drawing from this room contains the symbol that was meant with probability at least ${promised}. `
    + `That is the average over rooms; with ${n} drawings, the coverage of one room lies between ${low} and ${high} (${percent(BAND)} of rooms).`;
}

// The room as a table: a column of strokes, one of labels, and the scores of every symbol.
function tableOf(pad) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const head = ["strokes", "label", ...pad.symbols.map(({ latex }) => latex)];
  const lines = pad.room.map(({ strokes, meant }) => [JSON.stringify(strokes), pad.symbols[meant].latex, ...Array.from(scores(pad.layers, strokes), String)]);
  return [head, ...lines].map((cells) => cells.map(quoted).join(",")).join("\n") + "\n";
}

function download(text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = "drawings.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

// Adds the drawings of a table; returns what happened, in words.
function bring(pad, text) {
  const [head, ...lines] = cellsOf(text);
  const [strokes, label] = ["strokes", "label"].map((name) => head?.indexOf(name) ?? -1);
  if (strokes < 0 || label < 0) return "This file has no columns strokes and label; give one that the pad exported.";
  const place = new Map(pad.symbols.map(({ latex }, j) => [latex, j]));
  const found = lines.map((cells) => ({ meant: place.get(cells[label]), strokes: parsed(cells[strokes]) }));
  const drawings = found.filter(({ meant, strokes }) => meant !== undefined && valid(strokes));
  settle(pad, [...pad.room, ...drawings]);
  const left = found.length - drawings.length;
  return `${drawings.length} drawings were added${left ? `; ${left} lines hold no drawing of a known symbol and were left out` : ""}.`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function cellsOf(text) {
  const [lines, cell] = [[[]], { text: "", quoted: false }];
  const close = () => {
    lines.at(-1).push(cell.text);
    cell.text = "";
  };
  for (let i = 0; i < text.length; i++) {
    const letter = text[i];
    if (cell.quoted) {
      if (letter !== '"') cell.text += letter;
      else if (text[i + 1] === '"') cell.text += text[i++];
      else cell.quoted = false;
    } else if (letter === '"') cell.quoted = true;
    else if (letter === ",") close();
    else if (letter === "\n") {
      close();
      lines.push([]);
    } else if (letter !== "\r") cell.text += letter;
  }
  if (cell.text || lines.at(-1).length) close();
  return lines.filter((cells) => cells.length > 0);
}
