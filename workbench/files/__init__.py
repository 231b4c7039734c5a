"""Files: one atomic writer, checksums, one content-addressed cache, and the folder they live in."""
