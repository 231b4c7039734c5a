// What moves with a slider while it moves.
//
// A channel is one place of the sliders, at which every array of a page is read. Elements mounted on a channel
// redraw themselves when the place changes. Nothing is computed or formatted here: Python sends, once, one line of
// numbers and one text for every place; names reach the page as text, never as HTML.

const channels = new Map();

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const before = parentElement.live;
  if (before) Object.assign(before, { tell: setStateValue, trigger: setTriggerValue });
  before?.look?.();
  if (before?.id === data.id) return before.leave;
  if (before?.kind === data.kind && before.change) {
    before.id = data.id; // the same picture with other numbers is redrawn in place
    before.change(data);
    return before.leave;
  }
  before?.leave();

  const root = document.createElement("div");
  root.className = `wb-live wb-${data.kind}`;
  parentElement.append(root);
  const live = { id: data.id, kind: data.kind, tell: setStateValue, trigger: setTriggerValue };
  parentElement.live = live;

  loadPlotly(data.plotly); // begins with the first element of a page, whatever it is
  const channel = channelNamed(data.channel);
  const { draw, stop, change, look } = KINDS[data.kind](root, data, channel, live);
  Object.assign(live, { change, look });
  channel.listeners.add(draw);
  if (channel.place !== null) draw(channel.place);

  live.leave = () => {
    channel.listeners.delete(draw);
    stop?.();
    root.remove();
    delete parentElement.live;
  };
  return live.leave;
}

function channelNamed(name) {
  if (!channels.has(name)) channels.set(name, { place: null, frame: null, listeners: new Set() });
  return channels.get(name);
}

// However fast the slider moves, the page is redrawn once per frame.
function move(channel, place) {
  channel.place = place;
  channel.frame ??= requestAnimationFrame(() => {
    channel.frame = null;
    for (const draw of channel.listeners) draw(channel.place);
  });
}

const KINDS = { sliders, figure, cards, drawing, suggestions, table, beside };
const MOVING_KEYS = /^(Home|End|Page(Up|Down)|Arrow(Left|Right|Up|Down))$/;
const SIGNS = { hit: "✓ ", miss: "✗ ", "": "" };

// Sliders that say the same in different words. The one that was moved last says it exactly; the others follow.
function sliders(root, data, channel, live) {
  let held = data.held;
  root.hidden = data.sliders.length + data.numbers.length === 0;
  root.style.setProperty("--sliders", Math.max(1, data.sliders.length));
  const drawn = data.sliders.map((slider) => {
    const box = add(root, "label", "wb-slider");
    box.title = slider.help;
    const [symbol, ...meaning] = slider.label.split(","); // where there is little room, the symbol stands alone
    const name = add(box, "span", "wb-name", symbol);
    add(name, "span", "wb-meaning", `,${meaning.join(",")}`);
    const output = add(box, "output", "wb-value");
    const input = add(box, "input");
    Object.assign(input, { type: "range", min: 0, max: slider.places.length - 1, step: 1, name: slider.name });
    input.setAttribute("aria-label", slider.label);
    input.setAttribute("aria-description", slider.help);
    const take = () => {
      held = slider.name;
      move(channel, slider.places[input.value]);
    };
    input.addEventListener("input", take);
    input.addEventListener("change", () => tellSoon(slider));
    // A key that moves nothing, as Home does at the end, tells of no input, and yet this slider was chosen.
    input.addEventListener("keyup", ({ key }) => {
      if (held === slider.name || !MOVING_KEYS.test(key)) return;
      take();
      tellSoon(slider);
    });
    return { slider, box, output, input };
  });
  const tiles = add(root, "dl", "wb-numbers");
  const numbers = data.numbers.map(({ label, texts, help }) => {
    const tile = add(tiles, "div", "wb-number");
    tile.title = help;
    add(tile, "dt", "", label);
    return { texts, output: add(tile, "dd") };
  });

  // Python is told when the slider rests: soon after a single move; later while one follows another, since a held arrow key
  // is one move and not forty, and Python would be in the way of pictures that follow by themselves.
  let [timer, moved] = [null, -Infinity];
  function tellSoon(slider) {
    const { name, values, nearest } = slider;
    const now = performance.now();
    clearTimeout(timer);
    timer = setTimeout(
      () => live.tell("position", { held: name, value: values[nearest[channel.place]] }), now - moved < 500 ? 250 : 30,
    );
    moved = now;
  }

  function draw(place) {
    for (const { slider, box, output, input } of drawn) {
      box.classList.toggle("wb-held", slider.name === held);
      input.value = slider.nearest[place];
      output.textContent = slider.texts[place];
      input.setAttribute("aria-valuetext", slider.texts[place]);
      input.style.setProperty("--share", slider.nearest[place] / Math.max(1, slider.places.length - 1));
    }
    for (const { texts, output } of numbers) output.textContent = texts[place];
    root.dataset.place = place;
  }

  // What a click on a picture asks for: the nearest value of a slider, as if it had been moved there.
  channel.seek = (name, value) => {
    const found = drawn.find(({ slider }) => slider.name === name);
    if (!found || !Number.isFinite(value)) return;
    const distances = found.slider.values.map((each) => Math.abs(each - value));
    found.input.value = distances.indexOf(Math.min(...distances));
    for (const event of ["input", "change"]) found.input.dispatchEvent(new Event(event));
  };

  move(channel, data.place);
  const leader = data.follows && follow(data.follows, channel, root);
  return {
    draw,
    look: leader?.look,
    stop: () => {
      clearTimeout(timer);
      leader?.stop();
    },
  };
}

// A slider of Streamlit's that leads: the page follows what it says while it moves, before Python hears of it. It may be
// drawn after us, and anew at any time; so it is looked for again whenever one says something new or Python has spoken.
function follow({ widget, texts }, channel, root) {
  const look = () => {
    if (!root.isConnected) return;
    const said = document.querySelector(`.st-key-${widget} input[type=range]`)?.getAttribute("aria-valuetext");
    const place = texts.indexOf(said);
    if (place >= 0 && place !== channel.place) move(channel, place);
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] });
  look();
  return { look, stop: () => observer.disconnect() };
}

// Numbers in a table: a cell has one text, or one for every place.
function table(root, data) {
  const table = add(root, "table", "wb-cells");
  add(table, "caption", "wb-title", data.title);
  const head = add(add(table, "thead"), "tr");
  for (const name of data.head) add(head, "th", "", name).scope = "col";
  const body = add(table, "tbody");
  const cells = data.lines.flatMap(([name, ...texts]) => {
    const line = add(body, "tr");
    add(line, "th", "", name).scope = "row";
    return texts.map((each) => ({ each, cell: add(line, "td") }));
  });
  const draw = (place) => {
    for (const { each, cell } of cells) cell.textContent = each[each.length > 1 ? place : 0];
    root.dataset.place = place;
  };
  return { draw };
}

// One of the library's Plotly figures. `moves` says which property of which trace (or of the layout) has which value at
// each place.
function figure(root, data, channel, live) {
  const heading = add(root, "h2", "wb-title", data.title);
  const subtitle = add(root, "p", "wb-subtitle");
  const picture = add(root, "div", "wb-picture");
  const setHeight = () => (picture.style.height = `${roomFor(data.height)}px`);
  setHeight();
  picture.classList.toggle("wb-clickable", data.clickable);
  root.setAttribute("role", "figure");
  heading.id = `wb-${data.id}`;
  root.setAttribute("aria-labelledby", heading.id);
  if (data.text) add(root, "p", "wb-spoken", data.text);
  const chosen = (point) => {
    if (!data.seeks) return clicked(live, picture, point);
    return channel.seek?.(data.seeks, Number(point.customdata?.[0] ?? picture._fullData[point.curveNumber].x[point.pointNumber]));
  };
  const frame = framed(root, picture, chosen);

  const moves = data.moves.map(readable);
  let begun = false;
  let shown = null; // null until Plotly has drawn the figure
  let visible = null; // null until it is known
  let busy = false;

  // Drawn once, where the sliders stand: not before they are there, and those in sight first.
  async function begin() {
    if (begun || visible === null || channel.place === null) return;
    begun = true;
    const Plotly = await loadPlotly(data.plotly);
    if (!visible) await idle();
    if (!root.isConnected) return;
    const { place } = channel;
    write(data.figure, moves, place);
    const suited = frame.suited(data.figure);
    await unlessGone(root, Plotly.newPlot(picture, suited.data, suited.layout, data.config));
    if (!root.isConnected) return;
    frame.dressed();
    if (data.clickable) picture.on("plotly_click", ({ points }) => chosen(points[0]));
    shown = place;
    root.dataset.place = place;
    draw(channel.place);
  }

  function draw(place) {
    if (place === null) return;
    subtitle.textContent = data.subtitles[data.subtitles.length > 1 ? place : 0];
    if (shown === null) return void begin();
    if (!visible || busy || shown === place) return;
    shown = place;
    busy = true;
    unlessGone(root, redraw(picture, moves, place)).finally(() => {
      busy = false;
      root.dataset.place = place;
      draw(channel.place); // where the slider has gone meanwhile; the places between are skipped
    });
  }

  // A figure that is scrolled out of sight waits until it is seen again.
  const sight = new IntersectionObserver((entries) => {
    visible = entries.at(-1).isIntersecting;
    draw(channel.place);
  });
  const size = onResize(picture, () => {
    setHeight();
    unlessGone(root, frame.resized());
  });
  sight.observe(picture);
  return {
    draw,
    stop: () => {
      sight.disconnect();
      size.disconnect();
      globalThis.Plotly?.purge(picture);
    },
  };
}

// One of the library's Plotly figures, drawn again in place when Python sends another: zoom, pointer and scroll stay. A film
// is one for each place of a slider of Streamlit's, which it follows by itself.
function drawing(root, data, channel, live) {
  const heading = add(root, "h3", "wb-title");
  const subtitle = add(root, "p", "wb-subtitle");
  const area = add(root, "div", "wb-picture");
  const spoken = add(root, "p", "wb-spoken");
  root.setAttribute("role", "figure");
  heading.id = `wb-${data.id}`;
  root.setAttribute("aria-labelledby", heading.id);
  const frame = framed(root, area, (point) => clicked(live, area, point));
  let wanted = null;
  let narrow = null; // whether the picture for a narrow screen is drawn, if there is one
  let film = null; // what follows a slider, if anything does
  let leader = null;
  let busy = true; // Plotly is drawing
  const slider = { place: null, frame: null, listeners: new Set([catchUp]) };

  async function change(given) {
    narrow = isNarrow();
    const next = { ...given, ...(narrow ? given.narrow : null) };
    wanted = { ...next, given };
    leader?.stop();
    film = given.film ? { ...given.film, moves: given.film.moves.map(readable), shown: null } : null;
    slider.place = null;
    leader = film && follow(film.follows, slider, root);
    busy = true;
    heading.textContent = next.title;
    say();
    setHeight();
    area.classList.toggle("wb-clickable", next.clickable);
    const Plotly = await loadPlotly(next.plotly);
    if (wanted.given !== given || !root.isConnected) return; // a newer one came meanwhile
    if (area.data && next.narrow && root.dataset.narrow !== String(narrow)) Plotly.purge(area); // another width, other axes
    root.dataset.narrow = narrow;
    const first = !area.data;
    if (slider.place !== null) write(next.figure, film.moves, (film.shown = slider.place));
    const drawn = root.dataset.wanted;
    const suited = frame.suited(next.figure);
    await unlessGone(root, Plotly.react(area, suited.data, suited.layout, next.config));
    if (!root.isConnected) return;
    frame.dressed();
    if (first) area.on("plotly_click", ({ points }) => wanted.clickable && clicked(live, area, points[0]));
    if (wanted.given !== given) return;
    root.dataset.drawn = drawn;
    busy = false;
    catchUp();
  }

  // The words of the picture that is wanted, and its name.
  function say() {
    const { place } = slider;
    const still = place === null;
    subtitle.textContent = still ? wanted.subtitle : film.subtitles[place];
    spoken.textContent = still ? wanted.text : film.texts[place];
    root.dataset.wanted = still ? wanted.id : `${wanted.id} ${place}`;
    root.toggleAttribute("data-follows", film !== null);
  }

  function catchUp() {
    if (film === null || slider.place === null) return;
    say();
    if (busy || film.shown === slider.place) return;
    busy = true;
    const [following, drawn] = [film, root.dataset.wanted];
    film.shown = slider.place;
    unlessGone(root, redraw(area, film.moves, film.shown)).finally(() => {
      if (film !== following) return;
      root.dataset.drawn = drawn;
      busy = false;
      catchUp(); // where the slider has gone meanwhile
    });
  }

  // A figure whose axes have one scale needs no more height than its width gives it.
  function setHeight() {
    const { height, ratio, beside, above } = wanted;
    const needed = ratio ? ratio * (area.clientWidth - beside) + above : height;
    area.style.height = `${Math.round(Math.min(roomFor(height, Boolean(ratio)), needed))}px`;
  }
  const isNarrow = () => area.clientWidth < NARROW;

  change(data);
  const size = onResize(area, () => {
    if (wanted.given.narrow && isNarrow() !== narrow) return void change(wanted.given);
    setHeight();
    unlessGone(root, frame.resized());
  });
  return {
    draw: () => {},
    change,
    look: () => leader?.look(),
    stop: () => {
      leader?.stop();
      size.disconnect();
      globalThis.Plotly?.purge(area);
    },
  };
}

// Photographs, each with the set predicted for it. Classes stand by falling probability: a set is the first of them.
function cards(root, data, channel, live) {
  root.style.setProperty("--hit", data.colours.hit);
  root.style.setProperty("--miss", data.colours.miss);
  const list = add(root, "ul", "wb-wall");
  const drawn = data.cards.map((card, position) => {
    const item = add(list, "li", "wb-card");
    const left = data.sheet ? add(item, "div", "wb-left") : null;
    if (left) photoFrom(data.sheet, position, data.columns, data.lines, card.photo, left);
    const body = add(item, "div", "wb-body");
    if (card.head) add(body, "p", "wb-head", card.head);
    const verdict = add(body, "p", "wb-verdict");
    const sign = add(verdict, "span", "wb-sign");
    const words = add(verdict, "span");
    add(body, "p", "wb-truth", card.truth);
    const classes = add(body, "ol", "wb-classes");
    const suggested = card.classes.map(({ name, text, probability, right, rank }) => {
      const line = add(classes, "li", right ? "wb-right" : "");
      add(line, "span", "wb-class", name).title = name;
      add(line, "span", "wb-probability", text);
      line.style.setProperty("--probability", probability);
      return { line, right, rank };
    });
    const more = add(body, "p", "wb-more");
    if (data.opens) {
      const open = add(left ?? body, "button", "wb-open", `open row ${card.number}`);
      open.addEventListener("click", () => live.trigger("clicked", { point: position, data: card.number }));
    }
    return { card, item, sign, words, suggested, more };
  });

  function draw(place) {
    for (const { card, item, sign, words, suggested, more } of drawn) {
      const size = card.sizes[place];
      const verdict = card.hits === null ? "" : card.hits[place] ? "hit" : "miss";
      item.dataset.verdict = verdict;
      item.dataset.size = size;
      sign.textContent = SIGNS[verdict];
      words.textContent = `${verdict && `${verdict} · `}${size} ${size === 1 ? "class" : "classes"}`;
      for (const { line, right, rank } of suggested) {
        line.hidden = rank >= size && !right;
        line.classList.toggle("wb-outside", rank >= size);
      }
      const told = suggested.filter(({ rank }) => rank < size).length;
      more.textContent = size > told ? `and ${size - told} more` : "";
    }
    root.dataset.place = place;
  }
  return { draw };
}

// The sets of one row under several rules, or of several runs: cards of one place, which follow no slider.
function beside(root, data, channel, live) {
  cards(root, data, channel, live).draw(0);
  return { draw: () => {} };
}

// One row in full: its photograph, what is known of it, and for each suggested class its bars and similar pictures.
function suggestions(root, data) {
  root.style.setProperty("--hit", data.colours.hit);
  root.style.setProperty("--miss", data.colours.miss);
  const side = add(root, "div", "wb-side");
  if (data.photo) photoFrom(data.photo, 0, 1, 1, data.about, side).classList.add("wb-large");
  const facts = add(side, "ul", "wb-facts");
  for (const fact of data.facts) add(facts, "li", "", fact);
  const table = add(root, "table", "wb-suggestions-table");
  const head = add(add(table, "thead"), "tr");
  const pictured = data.sheet !== null || data.awaited > 0;
  root.setAttribute("aria-busy", data.awaited > 0);
  for (const name of ["suggested class", ...data.head, ...(pictured ? ["most similar training pictures"] : [])]) {
    add(head, "th", "", name).scope = "col";
  }
  const n = Math.max(...data.lines.flatMap(({ pictures }) => pictures), 0) + 1;
  const body = add(table, "tbody");
  for (const { name, in_set: inSet, right, shares, texts, pictures, captions } of data.lines) {
    const line = add(body, "tr", `${right ? "wb-right" : ""} ${inSet ? "" : "wb-outside"}`);
    const title = add(line, "th", "wb-class", name);
    title.scope = "row";
    title.title = name;
    if (!inSet) add(title, "span", "wb-note", "not in the set");
    shares.forEach((value, place) => {
      const cell = add(line, "td", "wb-bar");
      cell.style.setProperty("--probability", Math.min(value, 1));
      add(cell, "span", "", texts[place]);
    });
    if (!pictured) continue;
    const strip = add(add(line, "td"), "div", "wb-similar");
    for (let place = 0; place < data.awaited; place += 1) add(strip, "div", "wb-awaited");
    pictures.forEach((at, place) => {
      const lines = Math.ceil(n / data.columns);
      photoFrom(data.sheet, at, data.columns, lines, captions[place], strip).title = captions[place];
    });
  }
  return { draw: () => {} };
}

// One photograph of a sheet that holds many, `columns` to a line.
function photoFrom(sheet, position, columns, lines, words, parent) {
  const photo = add(parent, "div", "wb-photo");
  photo.style.backgroundImage = `url(${sheet})`;
  photo.style.backgroundSize = `${columns * 100}% auto`;
  const [line, column] = [Math.floor(position / columns), position % columns];
  photo.style.backgroundPosition = `${share(column, columns)} ${share(line, lines)}`;
  photo.setAttribute("role", "img");
  photo.setAttribute("aria-label", words);
  return photo;
}

// Python is told which point of which trace, by its name, was clicked, and what it carries.
function clicked(live, picture, { curveNumber, pointNumber: point, customdata = null }) {
  const trace = picture.data[curveNumber].name ?? null;
  live.trigger("clicked", { trace, point, data: ArrayBuffer.isView(customdata) ? Array.from(customdata) : customdata });
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

// Safari knows no idle time.
const idle = () => new Promise((resolve) => (globalThis.requestIdleCallback ?? setTimeout)(resolve));

const share = (index, count) => `${count > 1 ? (100 * index) / (count - 1) : 0}%`;

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

// `Plotly.update` draws axes and legend again, which takes most of its time. Where they stay, an animation of no duration
// moves the marks alone; the cells of a heat map it leaves as they are.
const AT_ONCE = { mode: "immediate", frame: { duration: 0, redraw: false }, transition: { duration: 0 } };
async function redraw(picture, moves, place) {
  const { Plotly } = globalThis;
  const traces = [];
  const inData = {};
  const inLayout = {};
  for (const item of moves) {
    const value = item.at(place);
    if (value === item.last) continue;
    item.last = value;
    if (item.trace === null) {
      setInLayout(picture.layout, inLayout, item.property, value);
      continue;
    }
    if (!traces.includes(item.trace)) traces.push(item.trace);
    (inData[item.property] ??= [])[traces.indexOf(item.trace)] = value;
  }
  const names = [...Object.keys(inData), ...Object.keys(inLayout)];
  for (const values of Object.values(inData)) values.length = traces.length; // Plotly would give the rest the first ones
  if (names.some((name) => name.includes(".") || name === "z")) return Plotly.update(picture, inData, inLayout, traces);
  const data = traces.map((_, place) => Object.fromEntries(Object.keys(inData).map((name) => [name, inData[name][place]])));
  if (traces.length) await Plotly.animate(picture, { data, traces }, AT_ONCE);
  return Plotly.relayout(picture, inLayout);
}

// What Plotly is still doing with a picture fails when the page moves on and takes the picture away; nobody minds.
function unlessGone(root, doing) {
  return Promise.resolve(doing).catch((error) => {
    if (root.isConnected) throw error;
  });
}

// Plotly is quick when it is given all shapes or all annotations anew; told of one property of one of them, it draws the
// whole figure again.
function setInLayout(layout, changes, property, value) {
  const [, list, index, inner] = /^(shapes|annotations)\[(\d+)\]\.(.+)$/.exec(property) ?? [];
  if (!list) return void (changes[property] = value);
  changes[list] ??= layout[list].map((item) => ({ ...item }));
  changes[list][index][inner] = value;
}

// One value for every place: the lines of a matrix as plotly.py writes it, or of one matrix after the other; what lies between
// two ends of a long line; or a number in a list of distinct values.
function reader({ dtype, shape, bdata, ends, distinct, at }) {
  if (distinct) return (place) => distinct[at[place]];
  const bytes = Uint8Array.from(atob(bdata), (character) => character.charCodeAt(0));
  const numbers = new { f4: Float32Array, f8: Float64Array, i4: Int32Array }[dtype](bytes.buffer);
  if (ends) return (place) => numbers.subarray(ends[place - 1] ?? 0, ends[place]);
  const [lines, columns] = shape.length === 3 ? shape.slice(1) : [1, shape[1]];
  const line = (number) => numbers.subarray(number * columns, (number + 1) * columns);
  if (shape.length === 2) return line;
  return (place) => Array.from({ length: lines }, (_, number) => line(place * lines + number));
}
