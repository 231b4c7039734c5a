"""The one shape of every loss.

A loss is a frozen dataclass whose fields are knobs. It declares its facts once (formula, paper, equation, convexity,
heads, labels, link); every table, slider, command-line option, gallery and contract test reads them from here.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from workbench import schedules
from workbench.citations import PAPERS as PAPERS
from workbench.knobs import Knob, Knobbed
from workbench.optional_dependencies import with_install_command
from workbench.trusted_imports import stored_name

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

REDUCTIONS = ("none", "mean", "sum")
FACTS = ("convex", "smooth", "calibrated", "proper")  # that may depend on knobs


@dataclass(frozen=True)
class Loss(Knobbed):
    """Base of all losses: a function of scores and labels that returns one value per row.

    A subclass declares its facts as class attributes (or properties, where a fact depends on a knob), its knobs as
    fields, and its formula in `values`. It is called as `loss(scores, labels)`; the call checks shapes and labels and
    computes half precision in float32, so that `values` is nothing but the formula.

    A numeric knob may follow a schedule (`wb.schedules`): `at(done)` is the loss at that share of the training. Its facts,
    and what a call returns, are those of the loss at the end.

    Inside `torch.func.vmap` or `grad`, and on a GPU, shapes and K are checked as everywhere. Labels that are mapped have no
    values to look at, and to look at those of a GPU would make it wait: there it is for the caller to check that they lie
    from 0 to L − 1. No loss asks the device for a value.
    """

    def __init_subclass__(cls, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        for name in FACTS:
            if isinstance(fact := vars(cls).get(name), property):
                setattr(cls, name, _at_the_end(fact))

    # Facts of the class.
    title: ClassVar[str]
    formula: ClassVar[str]  # LaTeX, shown beside the slider and in the guide
    paper: ClassVar[str]  # a key of PAPERS
    equation: ClassVar[str]
    smooth: ClassVar[bool]
    heads: ClassVar[int] = 1  # 2: scores are (n, 2, L); [:, 0] predicts, [:, 1] proposes candidates
    head: ClassVar[str] = "linear"  # or "cosine": unit-norm features and weights, the loss multiplies by `scale`
    labels: ClassVar[str] = "one"  # or "many": labels are (n, L) bool, an all-False row has no label
    also_many_labels: ClassVar[bool] = False  # a one-label loss that also reads (n, L) labels, normalised per row
    link: ClassVar[str] = "softmax"  # how cached scores become probabilities
    couples_batch: ClassVar[bool] = False  # the value of a row depends on the other rows of the batch
    random: ClassVar[bool] = False  # draws noise: pass `noise=` or `generator=`
    trains: ClassVar[bool] = True  # False: the gradient is zero almost everywhere
    compiles: ClassVar[bool] = (
        True  # False: it draws, or its gradient is written by hand; a compiled run takes it as it is
    )

    # Facts of an instance, which may depend on K and ε: a subclass gives a value, or a property of its own.
    @property
    def convex(self) -> bool:
        """Whether it is convex in the scores."""
        raise NotImplementedError(f"{type(self).__name__} must say whether it is convex")

    @property
    def calibrated(self) -> bool:
        """Whether it is top-K calibrated in the sense of Yang & Koyejo."""
        raise NotImplementedError(f"{type(self).__name__} must say whether it is calibrated")

    @property
    def proper(self) -> bool:
        """Whether, one label drawn from P, it is least exactly where the link of the scores is P."""
        return False

    def values(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        noise: Tensor | None = None,
        generator: torch.Generator | None = None,
        state: nn.Module | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """The formula: one value per row. Scores are float32 or float64 and labels are checked."""
        raise NotImplementedError(f"{type(self).__name__} must define values(scores, labels, ...)")  # pragma: no cover

    def __call__(
        self,
        scores: Tensor,  # (n, L), or (n, 2, L) when heads == 2
        labels: Tensor,  # (n,) int64, or (n, L) bool
        *,
        noise: Tensor | None = None,
        generator: torch.Generator | None = None,
        state: nn.Module | None = None,
        rows: Tensor | None = None,
        reduction: str = "none",
    ) -> Tensor:
        """Loss of each row, or of the batch.

        Args:
            scores: (n, L) floating point, or (n, 2, L) for a loss with two heads.
            labels: (n,) class indices, or (n, L) bool for a loss of many labels.
            noise: Draws of a random loss, in place of fresh ones.
            generator: Source of the draws of a random loss.
            state: What `state()` gave, for losses that remember.
            rows: Indices of the rows in the training set, for losses with a state.
            reduction: "none" for one value per row, "mean" for the paper's batch loss, or "sum".

        Returns:
            A tensor of shape (n,), or a scalar.

        Raises:
            TypeError: If scores or labels are not tensors.
            ValueError: If shapes, dtypes or values do not fit the loss.
        """
        loss = self.at(1)
        scores = loss._checked_scores(scores)
        labels = loss._checked_labels(scores, labels)
        return reduced(loss.values(scores, labels, noise=noise, generator=generator, state=state, rows=rows), reduction)

    def at(self, done: float) -> Self:
        """The loss when the share `done` of the training is behind: schedules give way to numbers; itself without any."""
        moving = self.scheduled()
        if not moving:
            return self
        knobs = self.knobs()
        return dataclasses.replace(
            self, **{name: schedules.value_at(knobs[name], moving[name], done) for name in moving}
        )

    def scheduled(self) -> dict[str, schedules.Schedule]:
        """Knob → the schedule that it follows; empty for most."""
        knobs = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in knobs.items() if isinstance(value, schedules.Schedule)}

    def logits(self, scores: Tensor) -> Tensor:
        """(n, L): what a table caches. The predicting head of two; `scale` times the cosine for a cosine head."""
        if self.heads == 2:
            scores = scores[:, 0]
        if self.head == "cosine":
            scores = scores * self.scale  # type: ignore[attr-defined]
        return scores

    def for_classes(self, class_counts: Any) -> Self:
        """A copy filled with the training counts, for losses whose margins depend on them; the loss itself otherwise."""
        return self

    def exact(self) -> Loss:
        """The loss that this one estimates by drawing noise; the loss itself where nothing is drawn."""
        return self

    def state(self, n_rows: int, n_classes: int) -> nn.Module | None:
        """Return the state kept between batches, as a module saved in the checkpoint; None for most losses."""
        return None

    def link_constant(self, state: nn.Module | None) -> float | None:
        """Return the constant of the link, from the state of the loss; None for most losses."""
        return None

    def readable(self, labels: Tensor, n_classes: int) -> Tensor:
        """Labels as the loss reads them: for a loss of many labels, a single one is a set of one."""
        import torch

        if self.labels != "many" or labels.ndim != 1:
            return labels
        none = torch.zeros(len(labels), n_classes, dtype=torch.bool, device=labels.device)
        return none.scatter(-1, labels.unsqueeze(-1), True)

    def spec(self) -> dict[str, Any]:
        """Return the content of `run.json`: class name and knobs. `losses.from_spec` creates the loss again."""
        knobs = {name: schedules.to_spec(value) for name, value in self.settings().items()}
        return {"loss": stored_name(type(self)), "knobs": knobs}

    def _checked(self, name: str, declared: Knob) -> Any:
        return schedules.checked(declared, name, getattr(self, name), owner=type(self).__name__)

    def _checked_scores(self, scores: Tensor) -> Tensor:
        try:
            from torch import Tensor
        except ModuleNotFoundError as error:
            raise with_install_command(error) from None

        from workbench.operators.order import at_least_float32

        name = type(self).__name__
        if not isinstance(scores, Tensor):
            raise TypeError(f"{name}: scores are {type(scores).__name__}; give a tensor (torch.as_tensor(scores))")
        if not scores.is_floating_point():
            raise ValueError(f"{name}: scores are {scores.dtype}; give floating-point numbers (scores.float())")
        expected = "(n, L)" if self.heads == 1 else "(n, 2, L): the predicting head, then the candidate head"
        if scores.ndim != 1 + self.heads or (self.heads == 2 and scores.shape[1] != 2):
            raise ValueError(f"{name}: scores have shape {tuple(scores.shape)}; this loss wants {expected}")
        if scores.shape[-1] < 2:
            raise ValueError(f"{name}: scores have {scores.shape[-1]} class; a loss needs at least 2")
        largest_K = getattr(self, "K", 1)
        if largest_K >= scores.shape[-1]:
            raise ValueError(
                f"{name}: K = {largest_K:g} with {scores.shape[-1]} classes; K must be smaller than the number of classes"
            )
        return at_least_float32(scores)

    def _checked_labels(self, scores: Tensor, labels: Tensor) -> Tensor:
        import torch
        from torch import Tensor

        from workbench.operators import applying

        name = type(self).__name__
        if not isinstance(labels, Tensor):
            raise TypeError(f"{name}: labels are {type(labels).__name__}; give a tensor (torch.as_tensor(labels))")
        n, n_classes = scores.shape[0], scores.shape[-1]
        many = labels.dtype == torch.bool and labels.ndim == 2
        if many and (self.labels == "many" or self.also_many_labels):
            if labels.shape != (n, n_classes):
                raise ValueError(
                    f"{name}: labels have shape {tuple(labels.shape)}, scores have {n} rows of {n_classes} classes"
                )
            return labels
        if self.labels == "many":
            raise ValueError(
                f"{name}: labels are {labels.dtype} of shape {tuple(labels.shape)}; this loss wants ({n}, {n_classes}) bool"
            )
        if labels.shape != (n,) or labels.is_floating_point() or labels.dtype == torch.bool:
            raise ValueError(
                f"{name}: labels are {labels.dtype} of shape {tuple(labels.shape)}; give {n} class indices (int64)"
            )
        # On a GPU and inside vmap labels are not checked; those of a dataset have been.
        if n and applying.is_here(labels):
            low, high = (int(end) for end in torch.aminmax(labels))
            if low < 0 or high >= n_classes:
                raise ValueError(
                    f"{name}: labels go from {low} to {high}; with {n_classes} classes give 0 to {n_classes - 1}"
                )
        return labels.long()


def reduced(values: Tensor, reduction: str) -> Tensor:
    """Values of rows as they are, their mean or their sum."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction = {reduction!r}; give one of {', '.join(REDUCTIONS)}")
    if reduction == "none":
        return values
    return values.mean() if reduction == "mean" else values.sum()


def _at_the_end(fact: property) -> property:
    """A fact that depends on knobs, of the loss at the end of its schedules."""
    of_loss = fact.fget
    assert of_loss is not None
    return property(lambda loss: of_loss(loss.at(1)), doc=fact.__doc__)
