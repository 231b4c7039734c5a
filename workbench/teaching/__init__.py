"""Teaching: lessons, a quiz and exercises, whose texts and numbers are computed from the library and its shipped runs."""
