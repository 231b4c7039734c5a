"""The lessons, in the order in which a course tells them; each stands alone."""

from workbench.teaching.lessons import (
    a_promise_and_its_price,
    a_threshold_without_labels,
    none_and_many,
    soft_ranks,
    top_k_or_average_k,
    twins_and_two_heads,
    what_a_network_can_learn_from,
    what_a_set_is,
    what_calibrated_means,
    what_epsilon_does,
)

LESSONS = tuple(
    module.LESSON
    for module in (
        what_a_set_is,
        top_k_or_average_k,
        a_threshold_without_labels,
        a_promise_and_its_price,
        what_a_network_can_learn_from,
        what_epsilon_does,
        what_calibrated_means,
        twins_and_two_heads,
        soft_ranks,
        none_and_many,
    )
)
