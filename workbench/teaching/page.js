// A lesson, a quiz, or a panel of linked pictures: the same script in the app, in a handout and on the static site.
//
// The question is answered first, by a click or by moving the slider; only then are the secret traces drawn and the
// captions and the answer told. Nothing is computed here: Python sends, once, what there is to see at every place.

const NOBODY = { right: false, side: "within" }; // the truth is shown though nobody answered
const kept = new Map(); // what was answered, by the name of the lesson or the quiz, for as long as the page lives

export default function ({ data, parentElement }) {
  const before = parentElement.shown;
  if (before?.id === data.id && before.present === data.present) return before.leave;
  before?.leave();
  const root = add(parentElement, "div", `wb-live wb-lesson${data.present ? " wb-present" : ""}`);
  const answers = kept.get(data.id) ?? kept.set(data.id, new Map()).get(data.id);
  const kind = data.panel ? panelPage : !data.lesson ? quiz : data.only ? pictureOfLesson : lesson;
  const drawn = kind(root, data, answers);
  const onKey = (event) => {
    if (event.target.closest?.("input[type=text], textarea, [contenteditable]")) return;
    if (event.key === "r") drawn.reveal();
    if (!drawn.turn?.({ PageDown: 1, PageUp: -1 }[event.key])) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // the app would turn to the next lesson
  };
  if (data.present) document.activeElement?.blur?.(); // the switch that was clicked would keep the keys of a presenter
  window.addEventListener("keydown", onKey, true);
  const leave = () => {
    window.removeEventListener("keydown", onKey, true);
    drawn.stop();
    root.remove();
    delete parentElement.shown;
  };
  parentElement.shown = { id: data.id, present: data.present, leave };
  return leave;
}

// A lesson, which can be tried again from its question on.
function lesson(root, data, answers) {
  let drawn = null;
  const begin = () => (drawn = lessonOnce(root, data, answers, again));
  function again() {
    answers.clear();
    drawn.stop();
    root.replaceChildren();
    begin();
    root.scrollIntoView();
  }
  begin();
  return { reveal: () => drawn.reveal(), turn: (by) => drawn.turn?.(by), stop: () => drawn.stop() };
}

function lessonOnce(root, data, answers, again) {
  const { sight, words, question, answer, notebook, panels } = data.lesson;
  let playing = [];
  const story = add(root, "div", "wb-story");
  rich(story, "p", "wb-sight", sight);
  for (const paragraph of words) rich(story, "p", "", paragraph);
  const asked = ask(root, question, "Predict first", data, answers, 0, (box) => {
    data.embed?.(root.querySelector(".wb-seen"), "picture", document.title);
    const told = add(box, "section", "wb-answer");
    told.setAttribute("aria-label", "The answer");
    for (const paragraph of answer) rich(told, "p", "", paragraph);
    add(told, "button", "wb-again", "Try again").addEventListener("click", again);
    rich(told, "p", "wb-deeper", notebook);
    playing = panels.map((each) => played(add(box, "section", "wb-panel"), each, data));
  });
  const stop = () => {
    asked.stop();
    playing.forEach((each) => each.stop());
  };
  if (!data.present) return { reveal: asked.reveal, stop };
  const screens = inScreens(root, asked, words.length, answer.length, panels.length);
  const leave = () => {
    screens.stop();
    stop();
  };
  return { reveal: screens.reveal, turn: screens.turn, stop: leave };
}

const [HALF, LEAST] = [0.5, 0.4]; // of a screen: what a picture has, and what it has beside words or is not there

// A lesson on a wall: one idea a screen. A clicker turns to the next screen, and after the last one to the next lesson.
function inScreens(root, asked, words, answers, panels) {
  const several = (name, count) => Array.from({ length: count }, (_, at) => ({ name, at }));
  const screens = [
    ...several("story", words), { name: "question" }, { name: "picture" }, ...several("answer", answers), ...several("panel", panels),
  ];
  const [question, picture] = [words, words + 1];
  const count = add(root, "p", "wb-screen");
  let now = 0;
  function show(screen) {
    now = screen;
    const { name, at } = screens[now];
    if (now > question) asked.reveal();
    root.dataset.screen = name;
    const [sight, ...paragraphs] = root.querySelectorAll(".wb-story > p");
    const told = [...root.querySelectorAll(".wb-answer > p:not(.wb-deeper)")];
    sight.hidden = at > 0;
    const played = [...root.querySelectorAll(".wb-panel")];
    for (const each of [paragraphs, told, played]) each.forEach((paragraph, index) => (paragraph.hidden = index !== at));
    count.textContent = `${now + 1} / ${screens.length}`;
    fit();
    dispatchEvent(new Event("resize"));
  }
  // The picture takes what the words leave.
  function fit() {
    const seen = root.querySelector(":scope > .wb-seen");
    seen.hidden = false;
    const plot = [...root.querySelectorAll(".wb-plot")].find((each) => each.offsetParent);
    if (!plot) return;
    const { top, height } = root.getBoundingClientRect();
    const left = innerHeight - (top + root.ownerDocument.documentElement.scrollTop) - (height - plot.offsetHeight) - 16;
    const beside = root.dataset.screen === "answer";
    seen.hidden = beside && left < LEAST * innerHeight;
    root.style.setProperty("--plot", `${Math.round(beside ? left : Math.max(left, HALF * innerHeight))}px`);
  }
  addEventListener("resize", fit);
  asked.settled = () => now === question && show(picture);
  show(0);
  return {
    reveal: () => now <= question && show(picture),
    turn: (by) => {
      if (!(now + by in screens)) return false;
      show(now + by);
      return true;
    },
    stop: () => removeEventListener("resize", fit),
  };
}

// What there is to play with after a lesson: pictures with sliders, or tokens to place.
const played = (root, each, data) => (each.photographs ? tokens : panel)(root, each, data);

// The picture of a lesson alone, as another page embeds it: nothing is asked, so nothing is hidden.
function pictureOfLesson(root, data) {
  const wanted = data.lesson.panels.find((each) => [each, ...(each.pictures ?? [])].some(({ name }) => name === data.only));
  if (wanted) return played(add(root, "section", "wb-panel"), wanted, data);
  const { picture } = data.lesson.question;
  const drawn = draw(add(root, "div", "wb-seen"), picture, data, true);
  return { reveal: () => {}, stop: drawn.stop };
}

function panelPage(root, data) {
  root.classList.add("wb-panel");
  return panel(root, data.panel, data);
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
    asked.settled?.();
  }

  const asked = { reveal: () => settle(NOBODY), stop: () => picture?.stop() };
  if (answers.has(number)) show(answers.get(number));
  return asked;
}

function draw(root, picture, data, told) {
  const { slider, captions } = picture;
  let place = slider?.start ?? 0;
  const area = add(root, "div", "wb-plot");
  area.style.height = `${picture.figure.layout.height}px`;
  const control = slider && addSlider(root, slider.label, slider.values.length - 1, (at) => {
    place = at;
    update();
  });
  const caption = add(root, "p", "wb-caption");
  caption.setAttribute("role", "status");
  const shown = plot(area, picture, data, () => ({ place, told }));

  function update() {
    control?.set(place, slider.texts[place]);
    caption.textContent = told && captions.length ? joined(captions[captions.length > 1 ? place : 0]) : "";
    shown.update();
  }
  update();
  return {
    place: () => place,
    reveal: () => {
      told = true;
      update();
    },
    stop: shown.stop,
  };
}
