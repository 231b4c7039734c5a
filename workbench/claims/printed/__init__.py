"""The tables as they are printed, one file per paper. Cells are as in the paper: a line a row, two spaces between cells."""
