// A lesson, or a quiz, in a page: the same script in the app and in a page that is handed out.
//
// The question is answered first, by a click or by moving the slider; only then are the secret traces drawn and the
// captions and the answer told. Nothing is computed here: Python sends, once, what there is to see at every place.

const NOBODY = { right: false, side: "within" }; // the truth is shown though nobody answered
const LARGE = 0.8; // letters of a picture against those of the words, for the last row of a lecture hall
const kept = new Map(); // what was answered, by the name of the lesson or the quiz, for as long as the page lives

export default function ({ data, parentElement }) {
  const before = parentElement.shown;
  if (before?.id === data.id && before.present === data.present) return before.leave;
  before?.leave();
  const root = add(parentElement, "div", `wb-live wb-lesson${data.present ? " wb-present" : ""}`);
  const answers = kept.get(data.id) ?? kept.set(data.id, new Map()).get(data.id);
  const drawn = (data.lesson ? lesson : quiz)(root, data, answers);
  const onKey = (event) => {
    if (event.key !== "r" || event.target.closest("input[type=text], textarea, [contenteditable]")) return;
    drawn.reveal();
  };
  document.addEventListener("keydown", onKey);
  const leave = () => {
    document.removeEventListener("keydown", onKey);
    drawn.stop();
    root.remove();
    delete parentElement.shown;
  };
  parentElement.shown = { id: data.id, present: data.present, leave };
  return leave;
}

function lesson(root, data, answers) {
  const { sight, words, question, answer, notebook } = data.lesson;
  const story = add(root, "div", "wb-story");
  rich(story, "p", "wb-sight", sight);
  for (const paragraph of words) rich(story, "p", "", paragraph);
  const asked = ask(root, question, "Predict first", data, answers, 0, (box) => {
    const told = add(box, "section", "wb-answer");
    told.setAttribute("aria-label", "The answer");
    for (const paragraph of answer) rich(told, "p", "", paragraph);
    rich(told, "p", "wb-deeper", notebook);
  });
  return { reveal: asked.reveal, stop: asked.stop };
}

function quiz(root, data, answers) {
  let asked = [];
  const begin = () => {
    const score = add(root, "p", "wb-score");
    score.setAttribute("role", "status");
    const count = () => {
      const right = [...answers.values()].filter((each) => each.right).length;
      score.textContent = `${right} right of ${answers.size} answered; ${data.quiz.length} questions`;
    };
    asked = data.quiz.map((question, number) => {
      const box = add(root, "article", "wb-question");
      return ask(box, question, `Question ${number + 1}`, data, answers, number, count);
    });
    add(root, "button", "wb-button", "Start again").addEventListener("click", () => {
      answers.clear();
      stop();
      root.replaceChildren();
      begin();
      root.scrollIntoView();
    });
    count();
  };
  const stop = () => asked.forEach((each) => each.stop());
  begin();
  return { reveal: () => {}, stop };
}

// A question: it is answered once, and what follows the answer is told by `after`.
function ask(root, question, title, data, answers, number, after) {
  const box = add(root, "section", "wb-asked");
  add(box, "h3", "wb-predict", title);
  rich(box, "p", "wb-text", question.text);
  const ways = add(box, "div", "wb-ways");
  const verdict = add(box, "div", "wb-verdict-of-lesson");
  verdict.setAttribute("role", "status");
  const place = add(root, "div", "wb-seen");
  const rest = add(root, "div", "wb-rest");
  let picture = null;
  const hidden = question.picture && !question.target && !question.picture.secret.length;
  if (question.picture && !hidden) picture = draw(place, question.picture, data, false);

  const buttons = question.choices.map((choice, at) => {
    const button = add(ways, "button", "wb-choice");
    rich(button, "span", "", choice.text);
    button.addEventListener("click", () => settle({ choice: at, right: choice.right }));
    return button;
  });
  if (question.target) {
    add(ways, "p", "wb-hint", "Move the slider to your answer.");
    const button = add(ways, "button", "wb-button", "This is my answer");
    button.addEventListener("click", () => settle(judged(picture.place())));
    buttons.push(button);
  }

  function judged(at) {
    const value = question.picture.slider.values[at];
    const { low, high } = question.target;
    const side = value < low - 1e-9 ? "below" : value > high + 1e-9 ? "above" : "within";
    return { at, side, right: side === "within" };
  }

  function settle(given) {
    if (answers.has(number)) return;
    answers.set(number, given);
    show(given);
  }

  function show(given) {
    ways.classList.add("wb-settled");
    for (const button of buttons) button.disabled = true;
    question.choices.forEach((choice, at) => {
      buttons[at].classList.add(choice.right ? "wb-is-right" : "wb-is-wrong");
      buttons[at].classList.toggle("wb-chosen", given?.choice === at);
      const why = add(ways, "p", "wb-why");
      add(why, "span", "wb-sign", choice.right ? "✓ " : "✗ ");
      rich(why, "span", "", choice.why);
      buttons[at].after(why);
    });
    if (given !== NOBODY) {
      const [sign, colour] = given.right ? ["✓ Right. ", "wb-is-right"] : ["✗ Not so. ", "wb-is-wrong"];
      add(verdict, "strong", colour, sign);
      if (question.target) add(verdict, "span", "", `Your answer: ${question.picture.slider.texts[given.at]}. `);
    }
    if (question.target) rich(verdict, "span", "", question.target[given.side]);
    if (hidden) picture = draw(place, question.picture, data, true);
    picture?.reveal();
    after(rest);
    root.dataset.told = true;
  }

  if (answers.has(number)) show(answers.get(number));
  return { reveal: () => settle(NOBODY), stop: () => picture?.stop() };
}

function draw(root, picture, data, told) {
  const { slider, figure, changes, captions, secret } = picture;
  let place = slider?.start ?? 0;
  const area = add(root, "div", "wb-plot");
  area.style.height = `${figure.layout.height}px`;
  area.setAttribute("role", "img");
  area.setAttribute("aria-label", picture.text);
  let input = null;
  let output = null;
  if (slider) {
    const box = add(root, "label", "wb-moved");
    add(box, "span", "wb-name", slider.label);
    output = add(box, "output", "wb-value");
    input = add(box, "input");
    Object.assign(input, { type: "range", min: 0, max: slider.values.length - 1, step: 1, value: place });
    input.setAttribute("aria-label", slider.label);
    input.addEventListener("input", () => {
      place = Number(input.value);
      update();
    });
    input.addEventListener("pointerup", () => input.blur()); // so that the keys of a presenter turn the page again
  }
  const caption = add(root, "p", "wb-caption");
  caption.setAttribute("role", "status");
  const layout = { ...figure.layout };
  delete layout.height;
  let [frame, stopped] = [null, false];

  function update() {
    if (slider) {
      output.textContent = slider.texts[place];
      input.setAttribute("aria-valuetext", slider.texts[place]);
    }
    caption.textContent = told && captions.length ? captions[captions.length > 1 ? place : 0] : "";
    frame ??= requestAnimationFrame(paint);
  }

  async function paint() {
    const Plotly = await loadPlotly(data.plotly);
    frame = null;
    if (stopped) return;
    const now = { data: structuredClone(figure.data), layout: structuredClone(layout) };
    for (const { path, values } of changes) write(now, path, values[place]);
    if (area.closest(".wb-present")) enlarge(now.layout, LARGE * parseFloat(getComputedStyle(root).fontSize));
    for (const trace of now.data) if (secret.includes(trace.name)) trace.visible = told;
    await Plotly.react(area, now.data, now.layout, { displayModeBar: false });
    root.dataset.place = place;
  }

  // Its place also changes where the window does not: a sidebar opens.
  const size = new ResizeObserver(() => area.clientWidth && area.data && globalThis.Plotly.Plots.resize(area));
  size.observe(area);
  addEventListener("resize", update);
  update();
  return {
    place: () => place,
    reveal: () => {
      told = true;
      update();
    },
    stop: () => {
      stopped = true;
      removeEventListener("resize", update);
      size.disconnect();
      globalThis.Plotly?.purge(area);
    },
  };
}

function enlarge(layout, size) {
  layout.font = { ...layout.font, size };
  for (const name of Object.keys(layout).filter((each) => /^[xy]axis/.test(each))) {
    layout[name].title = { ...layout[name].title, font: { size } };
  }
}

function write(figure, path, value) {
  const inner = path.slice(0, -1).reduce((within, name) => (within[name] ??= {}), figure);
  if (value === null) delete inner[path.at(-1)];
  else inner[path.at(-1)] = value;
}

// Texts of lessons know three kinds of stress; everything else is text.
function rich(parent, tag, className, text) {
  const element = add(parent, tag, className);
  for (const part of text.split(/(\*\*[^*]+\*\*|\*[^*]+\*|`[^`]+`)/)) {
    if (part.startsWith("**")) add(element, "strong", "", part.slice(2, -2));
    else if (part.startsWith("*") && part.length > 2) add(element, "em", "", part.slice(1, -1));
    else if (part.startsWith("`")) add(element, "code", "", part.slice(1, -1));
    else element.append(part);
  }
  return element;
}
