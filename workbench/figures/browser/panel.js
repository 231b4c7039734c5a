// A panel: linked sliders, numbers and pictures that follow one position. The same in lessons, on the static site and in a
// notebook, whose scripts stand after this one.

const CONFIG = { displayModeBar: false };
const LARGE = 0.8; // letters of a picture against those of the words, for the last row of a lecture hall

// Sliders say the position in several ways: a linked one names the position of each of its values (`positions`); a knob of a
// grid moves along its own axis (`stride`). `data.only` shows a single picture; `data.night` draws by night; `data.moved` and
// `data.chosen` are told of a new position and of a click on a picture.
function panel(root, { about, sliders, numbers, pictures, start }, data) {
  let place = start;
  if (!data.only) for (const paragraph of about) rich(root, "p", "wb-about", paragraph);
  const bar = add(root, "div", "wb-bar");
  const moved = sliders.map((slider) => {
    const make = slider.kind === "toggle" ? addToggle : slider.kind === "play" ? addPlayer : addSlider;
    const control = make(bar, slider.label, Math.max(...slider.nearest), (at) => {
      const start = slider.block ? place - (place % slider.block) : 0;
      place = slider.stride ? place + (at - slider.nearest[place]) * slider.stride : start + slider.positions[at];
      update();
      data.moved?.(place);
    });
    return { slider, control };
  });
  const tiles = add(bar, "dl", "wb-numbers");
  const outputs = numbers.map(({ label, texts }) => {
    const tile = add(tiles, "div");
    add(tile, "dt", "", label);
    return { texts, output: add(tile, "dd") };
  });
  const wall = add(root, "div", "wb-wall-of-pictures");
  const drawn = pictures.filter(({ name }) => !data.only || name === data.only).map((picture) => {
    const box = add(wall, "section", "wb-picture-of-panel");
    add(box, "h2", "", picture.title);
    const subtitle = add(box, "p", "wb-subtitle");
    const area = add(box, "div", "wb-plot");
    area.style.height = `${picture.figure.layout.height}px`;
    const shown = plot(area, picture, data, () => ({ place, told: true }));
    data.embed?.(box, picture.name, picture.title);
    return { picture, subtitle, shown };
  });

  function update() {
    for (const { slider, control } of moved) control.set(slider.nearest[place], slider.texts[place]);
    for (const { texts, output } of outputs) output.textContent = texts[place];
    for (const { picture, subtitle, shown } of drawn) {
      subtitle.textContent = picture.subtitles[picture.subtitles.length > 1 ? place : 0];
      shown.update();
    }
    root.dataset.place = place;
  }
  update();
  const stop = () => {
    moved.forEach(({ control }) => control.stop?.());
    drawn.forEach(({ shown }) => shown.stop());
  };
  const seek = (position) => {
    place = position;
    update();
  };
  return { reveal: () => {}, seek, stop };
}

// A slider with its name and its value in words.
function addSlider(root, label, last, moved) {
  const box = add(root, "label", "wb-moved");
  add(box, "span", "wb-name", label);
  const output = add(box, "output", "wb-value");
  const input = add(box, "input");
  Object.assign(input, { type: "range", min: 0, max: last, step: 1 });
  input.setAttribute("aria-label", label);
  input.addEventListener("input", () => moved(Number(input.value)));
  input.addEventListener("pointerup", () => input.blur()); // so that the keys of a presenter turn the page again
  const set = (at, text) => {
    input.value = at;
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  return { set };
}

// A button that is on or off.
function addToggle(root, label, last, moved) {
  const button = add(root, "button", "wb-toggle", label);
  button.addEventListener("click", () => moved(button.getAttribute("aria-pressed") === "true" ? 0 : 1));
  return { set: (at) => button.setAttribute("aria-pressed", at === 1) };
}

// A slider that also moves by itself, from its beginning if it stands at its end.
function addPlayer(root, label, last, moved) {
  const box = add(root, "div", "wb-played");
  let [now, timer] = [0, null];
  const slider = addSlider(box, label, last, moved);
  const button = add(box, "button", "wb-play", "▶ Play");
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "▶ Play";
  };
  button.addEventListener("click", () => {
    if (timer) return stop();
    button.textContent = "❚❚ Pause";
    if (now === last) moved(0);
    timer = setInterval(() => (now < last ? moved(now + 1) : stop()), 180);
  });
  const set = (at, text) => slider.set((now = at), text);
  return { set, stop };
}

// A figure that is drawn as `state` says, { place, told }: once a frame, and what it has no time for is skipped. It is drawn
// whole at first, and when its secret is told or its letters grow; otherwise its moves are played.
function plot(area, { name, figure, moves, text, secret = [], night = [], nightMoves = [], clickable = false }, data, state) {
  area.setAttribute("role", "img");
  area.setAttribute("aria-label", text);
  area.classList.toggle("wb-clickable", clickable);
  const [along, byNight] = [data.night ? [...moves, ...nightMoves] : moves, night].map((each) => each.map(readable)); // the last one wins
  let [frame, stopped, shown] = [null, false, {}];
  const update = () => (frame ??= requestAnimationFrame(paint));

  function wanted() {
    const size = area.closest(".wb-present") ? LARGE * parseFloat(getComputedStyle(area.parentElement).fontSize) : 0;
    return { ...state(), size };
  }

  async function paint() {
    try {
      await loadPlotly(data.plotly);
      for (let next = wanted(); !stopped && differ(next, shown); next = wanted()) {
        const whole = next.told !== shown.told || next.size !== shown.size;
        shown = next;
        await unlessGone(area, whole ? draw(next) : redraw(area, along, next.place, CONFIG));
        area.parentElement.dataset.place = next.place;
      }
    } finally {
      frame = null;
    }
  }

  async function draw({ place, told, size }) {
    const Plotly = await plotly;
    const now = structuredClone({ data: figure.data, layout: figure.layout });
    delete now.layout.height;
    write(now, byNight, data.night ? 1 : 0);
    write(now, along, place);
    if (size) enlarge(now.layout, size);
    for (const trace of now.data) if (secret.includes(trace.name)) trace.visible = told;
    const first = !area.data;
    await Plotly.react(area, now.data, now.layout, CONFIG);
    if (first && clickable) area.on("plotly_click", ({ points }) => data.chosen?.(name, pointOf(area, points[0])));
  }

  // Its place also changes where the window does not: a sidebar opens.
  const size = onResize(area, async () => {
    if (area.clientWidth && area.data) unlessGone(area, (await plotly).Plots.resize(area));
  });
  addEventListener("resize", update);
  return {
    update,
    stop: () => {
      stopped = true;
      removeEventListener("resize", update);
      size.disconnect();
      plotly?.then((Plotly) => Plotly.purge(area));
    },
  };
}

const differ = (one, other) => Object.keys(one).some((name) => one[name] !== other[name]);

function enlarge(layout, size) {
  layout.font = { ...layout.font, size };
  for (const name of Object.keys(layout).filter((each) => /^[xy]axis/.test(each))) {
    layout[name].title = { ...layout[name].title, font: { size }, standoff: size / 2 };
    layout[name].automargin = true;
  }
}

// A number and its per cent sign stay on one line.
const joined = (text) => text.replace(/ %/g, "\u00a0%");

// Texts know three kinds of stress; everything else is text.
function rich(parent, tag, className, text) {
  const element = add(parent, tag, className);
  for (const part of joined(text).split(/(\*\*[^*]+\*\*|\*[^*]+\*|`[^`]+`)/)) {
    if (part.startsWith("**")) add(element, "strong", "", part.slice(2, -2));
    else if (part.startsWith("*") && part.length > 2) add(element, "em", "", part.slice(1, -1));
    else if (part.startsWith("`")) add(element, "code", "", part.slice(1, -1));
    else element.append(part);
  }
  return element;
}
