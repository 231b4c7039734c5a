// A panel in a notebook, as an anywidget: it moves in the browser, and Python hears of it when a slider rests.

const LOADED = Symbol.for("set-workbench: plotly.js"); // once a page: every widget has a script of its own
const REST = 60; // milliseconds after which a slider rests

export default {
  render({ model, el }) {
    const root = add(el, "div", "wb-panel wb-in-notebook");
    const still = add(root, "img", "wb-still");
    Object.assign(still, { src: model.get("still"), alt: model.get("text") });
    const note = document.createElement("p");
    note.className = "wb-note";
    note.setAttribute("role", "status");
    let [shown, night, timer] = [null, null, null];

    function draw() {
      shown?.stop();
      night = isNight(el);
      root.replaceChildren();
      root.classList.toggle("wb-night", night);
      shown = panel(root, { ...model.get("panel"), start: model.get("place") }, { night, moved, chosen });
      root.append(note);
    }

    function moved(place) {
      clearTimeout(timer);
      timer = setTimeout(() => tell("place", place), REST);
    }

    const chosen = (picture, point) => tell("chosen", { picture, ...point });

    function tell(name, value) {
      model.set(name, value);
      model.save_changes();
      root.dataset.told = model.get("place");
    }

    const follow = () => model.get("place") !== Number(root.dataset.place) && shown?.seek(model.get("place"));
    const say = () => (note.textContent = model.get("note"));
    const dress = () => shown && isNight(el) !== night && draw();
    model.on("change:place", follow);
    model.on("change:note", say);
    const theme = new MutationObserver(dress);
    for (const element of [document.documentElement, document.body]) theme.observe(element, { attributes: true });
    let gone = false;
    plotlyFrom(model).then((loaded) => {
      plotly = Promise.resolve(loaded);
      if (!gone) draw();
    });
    say();
    return () => {
      gone = true;
      clearTimeout(timer);
      theme.disconnect();
      model.off("change:place", follow);
      model.off("change:note", say);
      shown?.stop();
    };
  },
};

// plotly.js comes from the kernel, not from the network and not with the notebook. The page keeps the one it has, if any.
function plotlyFrom(model) {
  return new Promise((resolve) => {
    if (globalThis[LOADED]) return resolve(globalThis[LOADED]);
    model.on("msg:custom", (message, buffers) => {
      if (message.answer === "plotly") resolve((globalThis[LOADED] ??= evaluated(new TextDecoder().decode(buffers[0]))));
    });
    model.send({ ask: "plotly" });
  });
}

function evaluated(code) {
  const [module, before] = [{ exports: {} }, globalThis.Plotly];
  new Function("module", code)(module);
  globalThis.Plotly = before;
  return module.exports;
}

// Whether what stands behind an element is dark, whichever program shows the notebook.
function isNight(element) {
  for (let behind = element; behind; behind = behind.parentElement) {
    const [red, green, blue, alpha = 1] = getComputedStyle(behind).backgroundColor.match(/[\d.]+/g).map(Number);
    if (alpha > 0) return 0.3 * red + 0.6 * green + 0.1 * blue < 128;
  }
  return false;
}
