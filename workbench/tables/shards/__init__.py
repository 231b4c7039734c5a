"""Tables in shards: a folder of `.npy`, `.parquet` or `.safetensors` files and a manifest that says what they are.

`table.append_to(url)` adds rows, `LogitTable.load(url)` opens all of them without copying them together, `adopt(url)` writes
the manifest of shards that some other program wrote. A url is a folder of this machine or any address that fsspec knows.
"""

from workbench.tables.shards.filesystem import is_url
from workbench.tables.shards.reader import holds_shards, load_shards
from workbench.tables.shards.sharded_scores import ShardedScores
from workbench.tables.shards.writer import adopt, append_shard, save_shards

__all__ = ["ShardedScores", "adopt", "append_shard", "holds_shards", "is_url", "load_shards", "save_shards"]
