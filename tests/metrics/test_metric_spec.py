"""One grammar of a metric with its K and its group: parsed and printed the same wherever it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.metric_spec import MetricSpec
from workbench.metrics import METRICS
from workbench.runs.monitors import monitor_named

NAMES = st.sampled_from([metric.name for metric in METRICS] + ["few_average_k_accuracy", "macro_top_k_accuracy"])
SIZES = st.none() | st.integers(1, 10**4) | st.floats(0.01, 100, allow_nan=False)
GROUPS = st.sampled_from(["", "few", "2–3", "≥ 101", "without a label", "genus (rosa)"])


@given(NAMES, SIZES, GROUPS)
def test_what_is_printed_is_parsed_to_the_same_metric(name, K, group):
    spec = MetricSpec(name, K, group)
    assert MetricSpec.parse(str(spec)) == spec
    assert MetricSpec.parse(str(MetricSpec(name, K)), group) == spec


def test_the_parts_of_a_name_of_sets_are_their_rule_and_their_classes():
    spec = MetricSpec.parse("few_average_k_accuracy@K=2.50")
    assert (spec.sets, spec.part, spec.K, str(spec)) == ("average_k", "few", 2.5, "few_average_k_accuracy@K=2.5")
    assert (MetricSpec.parse("top_k_accuracy@K=5").sets, MetricSpec.parse("mean_size").sets) == ("top_k", "")
    assert (str(spec.at(3)), str(MetricSpec("val_loss").at(3))) == ("few_average_k_accuracy@K=3", "val_loss")


@pytest.mark.parametrize("K", ["", "a", "0", "-1", "inf", "nan"])
def test_a_K_that_is_no_number_above_0_is_refused_with_an_example(K):
    with pytest.raises(ValueError, match=f"K = {K}; give a number above 0, such as top_k_accuracy@K=3"):
        MetricSpec.parse(f"top_k_accuracy@K={K}")


def test_reports_monitors_and_metrics_at_a_K_say_the_same_name():
    table = wb.LogitTable([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0]], labels=[0, 2])
    at_2 = wb.metrics.top_k_accuracy.at(K=2)
    assert wb.report(table, rules=[], metrics=[at_2])["metric"].tolist() == [at_2.name] == ["top_k_accuracy@K=2"]
    assert monitor_named("top_k_accuracy@K=2.0").name == at_2.name
