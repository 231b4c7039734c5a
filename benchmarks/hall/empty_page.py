"""The floor: a Streamlit page with one slider and one line."""

import streamlit as st

st.title("Empty")
st.write(st.slider("K", 1, 20))
