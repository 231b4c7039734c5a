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

// While a slider is dragged, axes only grow, and a ghost shows where it began.
function hold(channel, dragged) {
  channel.dragged = dragged;
  for (const draw of channel.listeners) draw(channel.place);
}

const KINDS = { sliders, figure, cards, drawing, suggestions, table, beside, explorable, map };
const MOVING_KEYS = /^(Home|End|Page(Up|Down)|Arrow(Left|Right|Up|Down))$/;
const NAMES_ON_CARD = 5; // where more are at hand
const WORDS = { hit: "correct", miss: "missed" };
const SIGNS = { hit: "✓ ", miss: "✗ ", "": "" };

// Sliders that say the same in different words. The one that was moved last says it exactly; the others follow.
function sliders(root, data, channel, live) {
  let held = data.held;
  const outer = data.sliders.find((slider) => slider.outer); // moves from block to block of the places
  const block = outer ? outer.places[1] : Infinity;
  root.hidden = data.sliders.length + data.numbers.length === 0;
  root.style.setProperty("--sliders", Math.max(1, data.sliders.length));
  const drawn = data.sliders.map((slider) => {
    const box = add(root, "label", "wb-slider");
    box.title = slider.help;
    const [, words, symbol] = /^(.*?)(\S+(?: − \S+)?)$/.exec(slider.label); // where there is little room, the symbol stands alone
    const name = add(box, "span", "wb-name");
    add(name, "span", "wb-meaning", words);
    name.append(symbol);
    const output = add(box, "output", "wb-value");
    const input = add(box, "input");
    Object.assign(input, { type: "range", min: 0, max: slider.places.length - 1, step: 1, name: slider.name });
    input.setAttribute("aria-label", slider.label);
    input.setAttribute("aria-description", slider.help);
    const take = () => {
      const [place, start] = [channel.place ?? data.place, slider.places[input.value]];
      if (slider.outer) return move(channel, start + (place % block));
      held = slider.name;
      move(channel, start + place - (place % block));
    };
    input.addEventListener("input", take);
    input.addEventListener("change", tellSoon);
    input.addEventListener("pointerdown", () => hold(channel, true));
    for (const end of ["pointerup", "pointercancel"]) input.addEventListener(end, () => hold(channel, false));
    // A key that moves nothing, as Home does at the end, tells of no input, and yet this slider was chosen.
    input.addEventListener("keyup", ({ key }) => {
      if (slider.outer || held === slider.name || !MOVING_KEYS.test(key)) return;
      take();
      tellSoon();
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

  // Python gets the position when the slider rests: soon after a single move; later while one follows another, since a held arrow key
  // is one move and not forty, and Python would be in the way of pictures that follow by themselves.
  let [timer, moved] = [null, -Infinity];
  const forget = () => clearTimeout(timer); // after Back or Forward it would ask for the page that was left
  addEventListener("popstate", forget);
  function tellSoon() {
    const now = performance.now();
    clearTimeout(timer);
    timer = setTimeout(() => live.tell("position", position()), now - moved < 500 ? 250 : 30);
    moved = now;
  }

  function position() {
    const valueOf = ({ values, nearest }) => values[nearest[channel.place]];
    const inner = data.sliders.find(({ name }) => name === held);
    return { held, value: valueOf(inner), ...(outer && { [outer.name]: valueOf(outer) }) };
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
      forget();
      removeEventListener("popstate", forget);
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
  const subtitle = add(root, "p", "wb-subtitle", data.subtitles[0]); // as many lines at once as it has later
  const picture = add(root, "div", "wb-picture");
  const setHeight = () => (picture.style.height = `${roomFor(data.figure.layout.height)}px`);
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
  frame.expects(data.figure);

  const moves = data.moves.map(readable);
  let begun = false;
  let shown = null; // null until Plotly has drawn the figure
  let visible = null; // null until it is known
  let busy = false;
  let ghost = null; // where a drag began

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
    const dragged = Boolean(channel.dragged);
    if (visible && dragged && !ghost) ghost = ghostOf(picture);
    if (!visible || busy || (shown === place && (dragged || !ghost))) return;
    if (!dragged && ghost) {
      ghost.forEach((layer) => layer.remove());
      ghost = null;
    }
    shown = place;
    busy = true;
    unlessGone(root, redraw(picture, moves, place, data.config, dragged && (() => ghost?.forEach((layer) => layer.remove())))).finally(() => {
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
      frame.gone();
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
    if (!area.data) frame.expects(next.figure);
    const Plotly = await loadPlotly(next.plotly);
    if (wanted.given !== given || !root.isConnected) return; // a newer one came meanwhile
    if (area.data && next.narrow && root.dataset.narrow !== String(narrow)) Plotly.purge(area); // another width, other axes
    root.dataset.narrow = narrow;
    const first = !area.data;
    if (slider.place !== null) write(next.figure, film.moves, (film.shown = slider.place));
    say(); // the slider may have moved while Plotly was loaded, and be heard only in the next frame
    const drawn = root.dataset.wanted;
    const suited = frame.suited({ ...next.figure, data: [...next.figure.data, ...(given.overlay ?? [])] });
    await unlessGone(root, Plotly.react(area, suited.data, suited.layout, next.config));
    if (!root.isConnected) return;
    frame.dressed();
    if (first) area.on("plotly_click", ({ points }) => wanted.clickable && clicked(live, area, points[0]));
    if (wanted.given !== given) return;
    root.dataset.drawn = drawn;
    busy = false;
    catchUp();
  }

  // The text of the selected picture, and its name.
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
    unlessGone(root, redraw(area, film.moves, film.shown, wanted.config)).finally(() => {
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
      frame.gone();
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
    if (card.text) add(body, "p", "wb-row-text", card.text).title = card.text;
    const verdict = add(body, "p", "wb-verdict");
    const sign = add(verdict, "span", "wb-sign");
    const words = add(verdict, "span");
    add(body, "p", "wb-truth", card.truth);
    const classes = add(body, "ol", "wb-classes");
    const suggested = card.classes.map(({ name, glyph, text, probability, right, rank, inside, likeliest }) => {
      const line = add(classes, "li", right ? "wb-right" : "");
      classTitle(line, "span", name, glyph);
      add(line, "span", "wb-probability", text);
      line.style.setProperty("--probability", probability);
      line.dataset.likeliest = likeliest;
      return { line, right, rank, moving: Boolean(inside), isIn: (place) => (inside ? inside[place] === "1" : rank < card.sizes[place]) };
    });
    const more = add(classes, "li", "wb-more"); // where the list leaves some out: before what stands further down, if that is right
    suggested.find(({ rank }, index) => rank > index)?.line.before(more);
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
      words.textContent = `${verdict && `${WORDS[verdict]} · `}${size} ${size === 1 ? "class" : "classes"}`;
      let told = 0;
      for (const { line, right, moving, isIn } of suggested) {
        const shown = isIn(place) && (right || !moving || told < NAMES_ON_CARD);
        line.hidden = !shown && !right;
        line.classList.toggle("wb-outside", !isIn(place));
        told += shown;
      }
      more.textContent = size > told ? `… ${size - told} more` : "";
      more.hidden = size <= told;
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
  if (data.text) add(side, "p", "wb-row-text wb-whole", data.text);
  if (data.sound) Object.assign(add(side, "audio", "wb-sound"), { controls: true, src: data.sound });
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
  for (const { name, glyph, in_set: inSet, right, shares, texts, pictures, captions } of data.lines) {
    const line = add(body, "tr", `${right ? "wb-right" : ""} ${inSet ? "" : "wb-outside"}`);
    const title = classTitle(line, "th", name, glyph);
    title.scope = "row";
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

// A class by its name, and before it what is drawn so, where it is a symbol.
function classTitle(parent, tag, name, glyph) {
  const title = add(parent, tag, "wb-class", name);
  title.title = name;
  if (!glyph) return title;
  const [x, y, width, height] = glyph.box;
  const side = Math.max(width, height, 60) + 10; // a small symbol stays small
  const viewBox = [x + width / 2 - side / 2, y + height / 2 - side / 2, side, side].join(" ");
  const outline = shape("svg", { viewBox, class: "wb-glyph", "aria-hidden": true });
  outline.append(shape("path", { d: glyph.path }));
  title.prepend(outline);
  return title;
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

// Sends a click to Python.
const clicked = (live, picture, point) => live.trigger("clicked", pointOf(picture, point));

// Safari knows no idle time.
const idle = () => new Promise((resolve) => (globalThis.requestIdleCallback ?? setTimeout)(resolve));

const share = (index, count) => `${count > 1 ? (100 * index) / (count - 1) : 0}%`;
