"""Sets of new rows from a bundle, without the workbench: python predict_with_bundle.py BUNDLE ROWS.npy"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

folder, rows = sys.argv[1:]
bundle = json.loads(Path(folder, "bundle.json").read_text(encoding="utf-8"))
network = onnxruntime.InferenceSession(f"{folder}/model.onnx")
scores, probabilities = network.run(None, {"inputs": np.load(rows).astype(bundle["inputs"]["dtype"])})
falling = np.argsort(-scores, axis=1, kind="stable")
inside = np.argsort(falling, axis=1) < bundle["min_size"]  # the first classes of each row, whatever their probability
if bundle["threshold"] is not None:
    inside |= probabilities >= np.float32(bundle["threshold"])
for classes, members in zip(falling, inside, strict=True):
    print(";".join(bundle["class_names"][j] for j in classes if members[j]))
