"""The forms of the papers' own cost tables, filled in for given subjects."""

from edgeembed_bench.forms.cmow import cmow_form
from edgeembed_bench.forms.filled import FilledForm
from edgeembed_bench.forms.hpd import hpd_form
from edgeembed_bench.forms.simtde import simtde_form
from edgeembed_bench.forms.xayn import xayn_form
from edgeembed_bench.inverted_lists import RetrievalTask

__all__ = ["FilledForm", "RetrievalTask", "cmow_form", "hpd_form", "simtde_form", "xayn_form"]
