"""What English is known by its function words alone: what to leave as it is, and what part of speech may follow."""

DETERMINERS = frozenset(
    "a an the this these those my your his its our their whose some any no every each another several".split()  # noqa: SIM905
)
"""A noun or an adjective follows, no verb and no adverb."""

FORMS_OF_BE = frozenset(
    "am is are was were be been i'm you're he's she's it's we're they're that's who's".split()  # noqa: SIM905
)
"""An -ing form that follows is a verb's: "is building"."""

SINGULAR_DETERMINERS = frozenset({"a", "an", "this", "every", "each", "another"})
"""No base form of a verb follows after a word more: in "a nice present" the last is a noun."""

PREPOSITIONS = frozenset("of in on at with for from by into during without between about against through".split())  # noqa: SIM905
"""A noun, an adjective or an -ing form follows, no other form of a verb."""

SUBJECTS_AND_MODALS = frozenset(
    """
    i you he she we they who will would can could may might must shall should do does did don't doesn't didn't can't
    cannot couldn't won't wouldn't shouldn't mustn't i'll you'll he'll she'll we'll they'll i'd you'd he'd she'd we'd
    they'd let's please
    """.split()  # noqa: SIM905
)
"""A verb, an adverb or (in a question) an adjective follows, no noun."""

FUNCTION_WORDS = (
    DETERMINERS
    | PREPOSITIONS
    | SUBJECTS_AND_MODALS
    | frozenset(
        """
        that her either neither many few both all such
        am is are was were be been being have has had having doing done it me him us them mine yours hers ours theirs
        myself yourself himself herself itself ourselves yourselves themselves what which whom when where why how
        and or but nor so yet if then else than as because since until while although though unless whether lest
        above across after along amid among around before behind below beneath beside besides beyond despite down except
        inside like near off onto opposite out outside over past per round throughout till to toward towards under
        underneath unlike up upon via within
        not never ever also too very quite rather just only even still already again almost enough else much more most
        less least little lot lots often always sometimes here there now today tomorrow yesterday once twice
        one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
        first second third last next other others own same well yes ok okay oh hey hello hi
        say tell ask show let way away soon hard instead due according ought need dare used mr mrs ms dr
        someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
        somewhere anywhere everywhere nowhere
        """.split()  # noqa: SIM905
    )
)
"""Words that hold a sentence together, and those whose commonest use WordNet does not know: never substituted."""
