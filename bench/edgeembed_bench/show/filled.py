"""A paper's table with our rows, for a terminal."""

from rich.console import Group
from rich.text import Text

from edgeembed_bench.forms import FilledForm
from edgeembed_bench.show.tables import Table
from edgeembed_bench.show.terminal import rich_table


def form_table(filled: FilledForm) -> Group:
    """Lay a filled form out for a rich console, with what it takes to read it."""
    first, *columns = filled.columns
    table = Table(first, ("subject", *columns), filled.rows, filled.source)
    notes = [filled.source, *filled.notes, *filled.load.reasons, filled.machine.cpu]
    return Group(rich_table(table), *(Text(note, style="dim") for note in notes))
