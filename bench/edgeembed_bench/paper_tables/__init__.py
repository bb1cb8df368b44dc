"""The cost tables of the papers, measured for your own subjects."""

from edgeembed_bench.paper_tables.base import PaperTable, terminal_paper_table
from edgeembed_bench.paper_tables.encoding import cmow_table, simtde_table, xayn_table
from edgeembed_bench.paper_tables.retrieval import RetrievalTask, hpd_table

__all__ = [
    "PaperTable",
    "RetrievalTask",
    "cmow_table",
    "hpd_table",
    "simtde_table",
    "terminal_paper_table",
    "xayn_table",
]
