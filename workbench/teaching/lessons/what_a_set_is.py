"""Lesson 1: a photograph may not show enough, and then one name is a gamble and a set is an honest answer."""

from __future__ import annotations

import base64
import io

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.teaching.base import Lesson, Picture, Question, Target, Told, axes, percent, slider
from workbench.teaching.demo import truth

WANTED = 0.9
MOST = 8  # species that are drawn


def photograph_of_a_flower() -> tuple[str, str, np.ndarray]:
    """A photograph that shows a flower and nothing else, as a PNG in text; its genus; what it tells of every species."""
    from PIL import Image

    from workbench.datasets.plants.flora import HIDDEN
    from workbench.datasets.plants.garden import Garden
    from workbench.datasets.plants.photographs import photographs

    garden = Garden()
    genera = np.array(garden.classes()[1])
    flowers = np.full((garden.flora.n_forms[0], 4), HIDDEN)
    flowers[:, 0] = np.arange(len(flowers))
    posterior = garden.posterior(flowers)
    hardest = int((np.cumsum(-np.sort(-posterior, axis=1), axis=1) < WANTED).sum(1).argmax())  # it tells least
    pixels = photographs([garden.scene(flowers[hardest], np.random.default_rng(0))], (0,))[0]
    content = io.BytesIO()
    Image.fromarray(pixels).resize((256, 256), Image.Resampling.LANCZOS).save(content, "PNG")
    shown = f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
    return shown, str(genera[posterior[hardest].argmax()]), posterior[hardest]


def tell(theme: Theme) -> Told:
    """The doubt that one flower leaves, and that of all photographs of the garden."""
    photo, genus, posterior = photograph_of_a_flower()
    falling = -np.sort(-posterior)[:MOST]
    held = np.cumsum(falling)
    needed = int((held < WANTED).sum()) + 1
    sizes = slider("species in the set", range(1, MOST + 1), "{:.0f}", start=1)
    image = {"source": photo, "xref": "paper", "yref": "paper", "x": 0, "y": 1, "sizex": 0.3, "sizey": 0.95}

    def drawn(size: int) -> go.Figure:
        colours = [theme.hit if place < size else theme.grid for place in range(MOST)]
        bars = go.Bar(x=np.arange(1, MOST + 1), y=falling, name="probability", marker={"color": colours})
        figure = axes(theme, "species, likeliest first", "probability", traces=[bars])
        figure.update_layout(
            showlegend=False, images=[image], yaxis_range=[0, 1.25 * falling[0]], yaxis_tickformat=".0%"
        )
        beside = 0.54  # where the bars begin, with room for their numbers beside the photograph
        figure.update_xaxes(domain=[beside, 1], dtick=1, range=[0.5, MOST + 0.5])
        return figure.update_yaxes(position=beside, anchor="free")

    test = truth().test
    known, shown = test.probabilities(), (test.attributes or {})["organs"]
    best = {organs: known[shown == organs].max(1).mean() for organs in ("flower", "bark", "flower+leaf")}
    picture = Picture(
        tuple(drawn(size) for size in range(1, MOST + 1)),
        f"A photograph of a flower of the genus {genus}, and bars: how probable each of its {MOST} commonest species is.",
        sizes,
        tuple(
            f"A set of {size} species holds the right one with probability {percent(held[size - 1], 0)}."
            for size in range(1, MOST + 1)
        ),
        secret=("probability",),
    )
    words = (
        "A *classifier* reads an input (here: a photograph) and answers with a *class* (here: a species). The right one is "
        "called the *label*. A *set-valued* classifier may answer with several classes; it is right if the label is among them.",
        "These plants are drawn by a program, so we know what no real collection tells: species of one *genus* share their "
        "flower, and differ only in leaf, fruit or bark. A photograph shows one or two of these organs.",
    )
    target = Target(
        needed,
        needed,
        f"Too few: {percent(held[max(needed - 2, 0)], 0)} for {needed - 1} and less before. A flower that several "
        "species share leaves real doubt.",
        f"More than needed: {needed} species already hold {percent(held[needed - 1], 0)}. A larger set is right more "
        "often and says less.",
        f"{needed} species hold {percent(held[needed - 1], 0)} of the probability, {needed - 1} only "
        f"{percent(held[needed - 2], 0)}.",
    )
    answer = (
        "Nobody can do better than the *posterior*: the probability of each class given all that the input shows. Here the "
        f"best single guess is right {percent(posterior.max(), 0)} of the time. That is no fault of the network; it is a "
        "property of the photograph, and no training changes it. What even the best classifier misses is called the "
        "*Bayes risk*; "
        "the set that the posterior gives is the *Bayes set*.",
        f"Over the whole garden, one guess by the posterior is right for {percent(best['flower'], 0)} of photographs of a "
        f"flower alone, {percent(best['bark'], 0)} of bark alone, {percent(best['flower+leaf'], 0)} of a flower with a "
        "leaf. So inputs are "
        "not equally ambiguous: the honest answer is **small when the input is clear and larger when it is not**.",
        "A network does not know the posterior. It returns a *score* for each class; the *softmax* (the exponentials of "
        "the scores, "
        "divided by their sum) makes probabilities of them, and a rule makes a set of the probabilities. Which rule, "
        "and how it is "
        "trained, is what the other lessons are about.",
    )
    question = Question(
        f"You see this flower and nothing else. How many species must the answer hold to be right {percent(WANTED, 0)} "
        "of the time?",
        target=target,
        picture=picture,
    )
    return Told(words, question, answer)


LESSON = Lesson(
    "what_a_set_is",
    "What a set is",
    "You will see one photograph that nobody can name for certain, and how large an honest answer to it is.",
    "01_where_is_my_data_ambiguous",
    tell,
)
