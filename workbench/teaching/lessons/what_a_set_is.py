"""Lesson 1: a photograph may not show enough, and then one name is a gamble and a set is an honest answer."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from workbench.figures.style import Theme
from workbench.teaching.base import Lesson, Picture, Question, Story, Target, axes, percent, slider
from workbench.teaching.demo_tables import truth
from workbench.teaching.machines import uncover
from workbench.teaching.photograph import photograph

WANTED = 0.9
MOST = 8  # species that are drawn


def photograph_of_a_flower() -> tuple[str, str, np.ndarray]:
    """A photograph that shows a flower and nothing else, as an address; its genus; what it tells of every species."""
    from workbench.datasets.plants.flora import HIDDEN
    from workbench.datasets.plants.garden import Garden

    garden = Garden()
    genera = np.array(garden.classes()[1])
    flowers = np.full((garden.flora.n_forms[0], 4), HIDDEN)
    flowers[:, 0] = np.arange(len(flowers))
    posterior = garden.posterior(flowers)
    hardest = int((np.cumsum(-np.sort(-posterior, axis=1), axis=1) < WANTED).sum(1).argmax())  # it tells least
    return photograph(garden, flowers[hardest]), str(genera[posterior[hardest].argmax()]), posterior[hardest]


def tell(theme: Theme) -> Story:
    """The doubt that one flower leaves, and that of all photographs of the garden."""
    photo, genus, posterior = photograph_of_a_flower()
    falling = -np.sort(-posterior)[:MOST]
    held = np.cumsum(falling)
    needed, sharing = int((held < WANTED).sum()) + 1, int((posterior > 0).sum())
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
        f"A photograph of a flower of the genus {genus}, and bars: how probable the {MOST} most probable species are.",
        sizes,
        tuple(
            f"A set of {size} species contains the right one with probability {percent(held[size - 1], 0)}."
            for size in range(1, MOST + 1)
        ),
        secret=("probability",),
    )
    words = (
        "A *classifier* reads an input, here a photograph, and names a *class*, here a species. The right class is the "
        "*label*. A *set-valued* classifier may name several classes; it is correct if the label is among them.",
        "The *garden* is a collection of plant photographs drawn by a program. Species of one *genus* share their flower "
        "and differ only in leaf, fruit or bark. A photograph shows one or two of these organs.",
    )
    target = Target(
        needed,
        needed,
        f"Too few: even {needed - 1} species reach only {percent(held[max(needed - 2, 0)], 0)}. "
        "The other species of the genus share the rest.",
        f"More than needed: {needed} species already hold {percent(held[needed - 1], 0)}. A larger set is right more "
        "often and says less.",
        f"{needed} species hold {percent(held[needed - 1], 0)} of the probability, {needed - 1} only "
        f"{percent(held[needed - 2], 0)}.",
    )
    answer = (
        "No classifier beats the *posterior*: the probability of each class given all that the input shows. Here its best "
        f"single guess is correct {percent(posterior.max(), 0)} of the time. That is a property of the photograph; no "
        "training changes it. The share of labels that even the best classifier misses is the *Bayes risk*; a set that is "
        "made from the posterior is a *Bayes set*.",
        f"Over the whole garden, the best guess is correct for {percent(best['flower'], 0)} of photographs of a flower "
        f"alone, {percent(best['bark'], 0)} of bark alone, {percent(best['flower+leaf'], 0)} of a flower with a leaf. "
        "Inputs are not equally ambiguous: a good answer is **small when the input is clear and larger when it is not**.",
        "A network does not know the posterior. It returns a *score* for each class; the *softmax* (exponentials of the "
        "scores, divided by their sum) turns scores into probabilities, and a rule turns probabilities into a set.",
    )
    question = Question(
        f"You see this flower and nothing else. {sharing} species have it, and the most frequent of them is right "
        f"{percent(posterior.max(), 0)} of the time. How many species must the set contain to be right {percent(WANTED, 0)} of "
        "the time?",
        target=target,
        picture=picture,
    )
    return Story(words, question, answer, (uncover(theme),))


LESSON = Lesson(
    "what_a_set_is",
    "What a set is",
    "You will see one photograph that cannot be named for certain, and how large an honest answer to it is.",
    "01_where_is_my_data_ambiguous",
    tell,
)
