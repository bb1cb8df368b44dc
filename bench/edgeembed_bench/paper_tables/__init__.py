"""The cost tables of the papers, measured for your own subjects."""

from edgeembed_bench.paper_tables.base import PaperTable
from edgeembed_bench.paper_tables.cmow import cmow_table
from edgeembed_bench.paper_tables.hpd import RetrievalTask, hpd_table
from edgeembed_bench.paper_tables.simtde import simtde_table
from edgeembed_bench.paper_tables.xayn import xayn_table

__all__ = ["PaperTable", "RetrievalTask", "cmow_table", "hpd_table", "simtde_table", "xayn_table"]
