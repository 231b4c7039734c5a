"""Tables in shards: a folder of `.npy`, `.parquet` or `.safetensors` files and a manifest that says what they are.

`table.append_to(url)` adds rows, `LogitTable.load(url)` opens all of them without copying them together, `adopt(url)` writes
the manifest of shards that some other program wrote. A url is a folder of this machine or any address that fsspec knows.
"""

from workbench.tables.shards.opening import holds_shards, load_shards
from workbench.tables.shards.places import is_url
from workbench.tables.shards.scores import ShardedScores
from workbench.tables.shards.writing import adopt, append_shard, save_shards

__all__ = ["ShardedScores", "adopt", "append_shard", "holds_shards", "is_url", "load_shards", "save_shards"]
