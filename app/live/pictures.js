// What stands around a Plotly picture and how one gets about in it: a legend that wraps, a button for the full screen, the
// keyboard. One module with live.js, which calls `framed`.

const TOUCHED = matchMedia("(hover: none)");
const DASHES = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4" };
const SYMBOLS = { star: "★", diamond: "◆", square: "■", "triangle-up": "▲", "triangle-down": "▼", x: "✕", cross: "✚" };
const LINE = 18; // pixels of a line there
const LEFT = 64; // pixels beside a picture for the numbers of its axis and their name
const BELOW = 52; // pixels below it
const LETTER = 6.6; // pixels of a letter beside an axis, about
const TYPE = 14; // pixels of the type in a picture
const FAR = 1.4; // times as large as that, on the full screen
const NARROW = 560; // pixels below which a picture is that of a narrow screen, if it has one
const LEAST = { plain: 240, scaled: 330 }; // pixels of a picture, however low the window is
const SHEET = { plain: 500, scaled: 780 }; // pixels from which on a picture is a sheet, which one scrolls
const ABOVE = 110; // pixels of a window that its head and the words above a picture take
const STAYS = "[class*=st-key-headline], [class*=st-key-stays]"; // controls that stay in sight
const HOW = "Arrow keys go from point to point, Enter opens what stands behind one, F fills the screen";

function framed(root, picture, chosen) {
  const legend = document.createElement("ul");
  legend.className = "wb-legend";
  picture.before(legend);
  const told = add(root, "p", "wb-spoken");
  told.setAttribute("aria-live", "polite");
  const fill = () => (root.classList.contains("wb-filled") ? leaveFull() : fillScreen(root));
  const button = add(root, "button", "wb-fill");
  const corners = shape("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": true });
  const look = { fill: "none", stroke: "currentColor", "stroke-width": 1.75 };
  corners.append(shape("path", { d: "M1 5V1h4M11 1h4v4M15 11v4h-4M5 15H1v-4", ...look }));
  button.append(corners);
  Object.assign(button, { type: "button", title: "Full screen (F)", tabIndex: -1 });
  button.setAttribute("aria-label", "Full screen");
  button.addEventListener("click", fill);
  byKeyboard(picture, chosen, told, fill);
  let [titles, left, below] = [{}, LEFT, BELOW]; // the names of its axes and the room beside them, as Python gave them

  return {
    // Whether there will be a legend is known before there is a picture: room for it is there from the beginning.
    expects({ data, layout }) {
      legend.hidden = !(layout.showlegend ?? data.filter(named).length > 1);
    },
    // A figure as it is drawn here: its legend is ours, a finger scrolls the page, and the names of its axes fit.
    suited({ data, layout }) {
      titles = Object.fromEntries(axes(layout).map((name) => [name, layout[name].title?.text ?? ""]));
      left = layout.margin?.l ?? LEFT;
      below = layout.margin?.b ?? BELOW;
      const ours = { ...layout, height: undefined, margin: { ...layout.margin }, showlegend: false }; // as high as its element
      for (const name of axes(layout)) {
        ours[name] = { ...layout[name], title: { ...layout[name].title } };
        if (TOUCHED.matches) ours[name].fixedrange = true;
      }
      if (TOUCHED.matches) ours.dragmode = false;
      for (const [path, value] of Object.entries(fitted(ours))) put(ours, path, value);
      picture.wantsLegend = layout.showlegend ?? data.filter(named).length > 1;
      return { data, layout: ours };
    },
    dressed() {
      legend.replaceChildren(...(picture.wantsLegend ? entries(picture) : []));
      legend.hidden = !legend.children.length;
    },
    gone() {
      if (root.classList.contains("wb-filled")) leaveFull();
      globalThis.Plotly?.purge(picture);
    },
    async resized() {
      if (!picture.data || !picture.clientWidth) return null; // Plotly refuses a picture that is not on the page
      const changed = Object.entries(fitted(picture.layout)).filter(([path, value]) => value !== at(picture.layout, path));
      const { Plotly } = globalThis;
      if (changed.length) await Plotly.relayout(picture, Object.fromEntries(changed));
      return Plotly.Plots.resize(picture);
    },
  };

  // The name of every axis in as many lines as its length allows, and room for them beside the axis, or below it. On the
  // full screen letters are larger, for those in the last row.
  function fitted(layout) {
    const scale = root.classList.contains("wb-filled") ? FAR : 1;
    const { r = 20, t = 12 } = layout.margin ?? {};
    const [width, height] = [picture.clientWidth - scale * left - r, picture.clientHeight - t - scale * below];
    const changes = { "font.size": scale * TYPE, "margin.l": scale * left, "margin.b": scale * below };
    for (const [name, title] of Object.entries(titles)) {
      changes[`${name}.title.font.size`] = scale * TYPE;
      if (!title) continue;
      const [low, high] = layout[name].domain ?? [0, 1];
      const text = lines(title, ((high - low) * (name[0] === "x" ? width : height)) / (scale * LETTER));
      const further = text.split("<br>").length - 1;
      changes[`${name}.title.text`] = text;
      if (name[0] === "y") changes["margin.l"] = Math.max(changes["margin.l"], scale * (LEFT + LINE * further));
      if (name[0] === "y" || !(further || layout[name].automargin)) continue;
      Object.assign(changes, { [`${name}.automargin`]: true, [`${name}.title.standoff`]: scale * apart(text) });
    }
    return changes;
  }
}

// A picture fills the screen below the bar, whose sliders still move it. A telephone that gives no page its whole screen
// gives it the window.
function fillScreen(root) {
  leaveFull();
  root.classList.add("wb-filled");
  document.documentElement.classList.add("wb-full"); // `:root:has(.wb-filled)` would be looked for after every change of the page
  document.documentElement.requestFullscreen?.().catch(() => {});
}

function leaveFull() {
  document.querySelector(".wb-filled")?.classList.remove("wb-filled");
  document.documentElement.classList.remove("wb-full");
  if (document.fullscreenElement) document.exitFullscreen();
}

document.addEventListener("fullscreenchange", () => document.fullscreenElement ?? leaveFull());

const apart = (text) => (text.includes("<br>") ? LINE + 6 : 10); // pixels between the numbers of an axis and its name
const axes = (layout) => Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name));
const at = (layout, path) => path.split(".").reduce((within, name) => within?.[name], layout);
const named = ({ name, showlegend, visible }) => name && showlegend !== false && visible !== false;

// A text in lines of at most so many letters, broken between words.
function lines(text, most) {
  const broken = [""];
  for (const word of text.split(" ")) {
    const longer = broken.at(-1) ? `${broken.at(-1)} ${word}` : word;
    if (longer.length > most && broken.at(-1)) broken.push(word);
    else broken[broken.length - 1] = longer;
  }
  return broken.join("<br>");
}

// How high a picture may be, so that it is on one screen with the controls that stay in sight above it.
function roomFor(height, scaled = false) {
  if (document.querySelector(".wb-filled") || height > (scaled ? SHEET.scaled : SHEET.plain)) return height;
  const controls = Math.max(0, ...[...document.querySelectorAll(STAYS)].map((e) => e.offsetHeight));
  return Math.min(height, Math.max(scaled ? LEAST.scaled : LEAST.plain, innerHeight - controls - ABOVE));
}

// The legend: what is drawn under one name is hidden and shown together.
function entries(picture) {
  const groups = new Map();
  picture._fullData.forEach((trace, number) => {
    const group = trace.legendgroup || `${number}`;
    if (!groups.has(group)) groups.set(group, { traces: [], shown: null });
    groups.get(group).traces.push(number);
    if (named(trace) && trace.showlegend) groups.get(group).shown ??= trace;
  });
  return [...groups.values()].filter(({ shown }) => shown).map(({ traces, shown }) => {
    const item = document.createElement("li");
    const button = add(item, "button");
    Object.assign(button, { type: "button", tabIndex: -1, title: "hide or show" });
    button.append(swatch(shown));
    add(button, "span", "", plainText(shown.name));
    button.setAttribute("aria-pressed", shown.visible === true);
    button.addEventListener("click", async () => {
      const hidden = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", !hidden);
      await globalThis.Plotly.restyle(picture, { visible: hidden ? "legendonly" : true }, traces);
    });
    return item;
  });
}

// Plotly reads names as HTML, and Python escapes them for it.
const plainText = (name) => new DOMParser().parseFromString(name, "text/html").body.textContent;

function swatch({ type, mode = "", line = {}, marker = {}, fill, fillcolor, opacity = 1 }) {
  const first = (value) => (Array.isArray(value) || ArrayBuffer.isView(value) ? value[0] : value);
  const colour = first(marker.color);
  const marks = [];
  if (type === "bar") {
    const edge = first(marker.line?.width) ? { stroke: first(marker.line.color), "stroke-width": 1.5 } : {};
    marks.push(shape("rect", { x: 8, y: 1, width: 12, height: 12, fill: colour, opacity: opacity * (first(marker.opacity) ?? 1), ...edge }));
  } else {
    if (fill && fill !== "none") marks.push(shape("rect", { x: 2, y: 2, width: 24, height: 10, fill: fillcolor }));
    if (mode.includes("lines")) {
      const look = { stroke: line.color, "stroke-width": Math.min(3, line.width), "stroke-dasharray": DASHES[line.dash] ?? "" };
      marks.push(shape("line", { x1: 1, x2: 27, y1: 7, y2: 7, ...look }));
    }
    if (mode.includes("markers")) {
      const [name, open] = String(first(marker.symbol) ?? "circle").split("-open");
      const edge = open === undefined ? { stroke: first(marker.line?.color) ?? colour, "stroke-width": first(marker.line?.width) ?? 0 } : { stroke: colour, "stroke-width": 2 };
      if (SYMBOLS[name]) {
        const letter = shape("text", { x: 14, y: 12, "text-anchor": "middle", "font-size": 14, fill: colour });
        letter.textContent = SYMBOLS[name];
        marks.push(letter);
      } else marks.push(shape("circle", { cx: 14, cy: 7, r: 4.5, fill: open !== undefined ? "none" : colour, ...edge }));
    }
  }
  const svg = shape("svg", { viewBox: "0 0 28 14", width: 28, height: 14, "aria-hidden": true });
  svg.append(...marks);
  return svg;
}

function shape(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// One stop of the Tab key for a picture. Arrows go along a line or along bars, up and down from one to the next; of a heat
// map they go through its cells. The text of a point is that of its hover label.
function byKeyboard(picture, chosen, told, fill) {
  picture.tabIndex = 0;
  picture.setAttribute("role", "application");
  picture.setAttribute("aria-roledescription", "picture");
  picture.setAttribute("aria-description", HOW);
  let place = null; // which trace, which of its points
  const drawn = new MutationObserver(tell); // of keys that come quickly, Plotly draws what the last one asks for some time later

  picture.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !picture._fullData) return;
    if (event.key.toLowerCase() === "f") return void (event.preventDefault(), fill());
    if (event.key === "Escape" && place !== null) return void leave();
    if (event.key === "Enter" && place !== null) return void open();
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const traces = reachable(picture);
    if (!traces.length) return;
    const known = place !== null && traces.some(({ number }) => number === place.trace);
    place = known ? moved(traces, place, step) : { trace: traces[0].number, point: traces[0].points[0] };
    show();
  });
  picture.addEventListener("blur", leave);

  function show() {
    const { xaxis, yaxis } = picture._fullData[place.trace];
    drawn.observe(picture, { childList: true, subtree: true });
    globalThis.Plotly.Fx.hover(picture, [{ curveNumber: place.trace, ...spot(picture, place) }], `${xaxis}${yaxis}`);
    tell();
  }

  function tell() {
    const said = [...picture.querySelectorAll(".hoverlayer text")].map((text) => [...text.childNodes].map((e) => e.textContent).join(" "));
    told.textContent = said.join(", ") || "nothing here";
  }

  function leave() {
    drawn.disconnect();
    if (place !== null && picture.data) globalThis.Plotly.Fx.unhover(picture);
    place = null;
    told.textContent = "";
  }

  function open() {
    if (!picture.classList.contains("wb-clickable")) return;
    const { customdata } = picture._fullData[place.trace];
    const [line, column] = [].concat(place.point);
    const data = column === undefined ? customdata?.[line] : customdata?.[line]?.[column];
    chosen({ curveNumber: place.trace, pointNumber: place.point, customdata: data ?? null });
  }
}

const STEPS = {
  ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
  PageUp: [0, -10], PageDown: [0, 10], Home: [0, -Infinity], End: [0, Infinity],
}; // prettier-ignore

// The traces that answer the pointer, each with the numbers of its points; of a heat map, its lines and columns.
function reachable(picture) {
  return picture._fullData
    .map((trace, number) => ({ trace, number }))
    .filter(({ trace }) => trace.visible === true && trace.hoverinfo !== "skip" && (trace.x?.length || trace.z?.length))
    .map(({ trace, number }) => {
      if (["heatmap", "contour"].includes(trace.type)) {
        const [low, high] = picture._fullLayout[trace.yaxis.replace("y", "yaxis")].range;
        return { number, cells: [trace.z.length, trace.z[0].length], up: Math.sign(high - low), points: [[0, 0]] };
      }
      const axis = picture._fullLayout[trace.xaxis.replace("x", "xaxis")];
      const drawn = (point) => Number.isFinite(Number(trace.y?.[point] ?? NaN)) || typeof trace.y?.[point] === "string";
      const within = (point) => Math.abs(axis.d2p(trace.x[point]) / axis._length - 0.5) < 0.51; // not beyond the end of its axis
      return { number, points: Array.from(trace.x, (_, point) => point).filter((point) => drawn(point) && within(point)) };
    })
    .filter(({ points }) => points.length);
}

// Plotly needs the number of a point, and the middle of a cell: a little before it, since the last one of a contour is its end.
function spot(picture, { trace, point }) {
  if (!Array.isArray(point)) return { pointNumber: point };
  const { x, y, z } = picture.calcdata[trace][0];
  const middle = (ends, cells, at) => {
    const value = ends.length > cells ? (ends[at] + ends[at + 1]) / 2 : ends[at];
    return value + 1e-6 * (ends[0] - value);
  };
  return { xval: middle(x, z[0].length, point[1]), yval: middle(y, z.length, point[0]) };
}

function moved(traces, { trace, point }, [down, right]) {
  const at = traces.findIndex(({ number }) => number === trace);
  const within = (value, count) => Math.max(0, Math.min(count - 1, value));
  const { cells, up, points } = traces[at];
  const line = cells && point[0] - up * down;
  const leaves = cells && (line < 0 || line >= cells[0]) && traces[at + down]; // to the next map, or the last one
  if (cells && !leaves) return { trace, point: [within(line, cells[0]), within(point[1] + right, cells[1])] };
  const position = points.indexOf(point);
  if (right) return { trace, point: points[within(position + right, points.length)] };
  const next = traces[within(at + down, traces.length)];
  return { trace: next.number, point: next.points[within(position, next.points.length)] };
}
