"""The same passes over a table, computed by the workers of a Dask cluster.

    with wb.cluster.on(client):
        wb.report(test, val=val)                  # every pass over a table inside the block
    wb.AverageK(5).fit(table, client=client)      # or of one fit

Workers read the shards of a table by themselves and return counts, sums or one number a row, never scores; what they return
is merged in the order of the rows. So the result has the same bits as without a cluster, and a
worker that dies costs time only. A table in memory is sent to the workers instead.
"""

from workbench.cluster.clients import LOCAL, connected, on

__all__ = ["LOCAL", "connected", "on"]
