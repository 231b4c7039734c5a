"""A page with a slider and its value, and nothing to compute: the round trip that no control of any app can undercut.

Run by `benchmarks/app.py`. Like the views of the app it is a fragment, so that a move runs these lines and nothing else.
"""

import streamlit as st


@st.fragment
def body() -> None:
    """All there is."""
    st.markdown(f"{st.slider('K', 0, 100, 50)}")


body()
