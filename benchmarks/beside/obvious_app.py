"""The obvious app, for comparison: every move of K goes to the server, which starts again from the matrices.

Run by `benchmarks/app.py`. Loading and the softmax are cached; what depends on K is computed anew and drawn with
`st.plotly_chart`, as anyone would write it first.
"""

import os

import numpy as np
import plotly.graph_objects as go
import streamlit as st

import workbench as wb
from workbench.store import Store


@st.cache_resource
def tables() -> tuple[wb.LogitTable, np.ndarray, np.ndarray]:
    """The test table, and the probabilities of val and test."""
    run = Store().open(os.environ["BENCHMARK_RUN"])
    return run.tables["test"], run.tables["val"].probabilities(), run.tables["test"].probabilities()


st.set_page_config(layout="wide")
test, val_probabilities, probabilities = tables()
K = st.slider("K", 1.0, 20.0, 5.0, 0.1)

m = round(K * len(val_probabilities))
falling = -np.partition(-val_probabilities.ravel(), m)[: m + 1]
threshold = (np.partition(falling, m - 1)[m - 1] + falling[m]) / 2
inside = probabilities >= threshold
sizes = inside.sum(axis=1)
hits = inside[np.arange(test.n), test.labels]
per_class = np.bincount(test.labels[hits], minlength=test.n_classes) / np.maximum(
    np.bincount(test.labels, minlength=test.n_classes), 1
)

title = f"K = {K:.1f}: {sizes.mean():.2f} classes on average, accuracy {hits.mean():.1%}"
for column, picture in zip(
    st.columns(3),
    (go.Histogram(x=sizes), go.Histogram(x=per_class, nbinsx=20), go.Bar(y=np.sort(per_class))),
    strict=True,
):
    column.plotly_chart(go.Figure(picture, layout={"title": title}))
