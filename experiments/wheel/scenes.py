"""Makes up what captions tell: who does what to what and where, and the same with one thing changed.

    python -m experiments.wheel.scenes COUNT ../shared/data/eval > scenes.txt

Captions are half of what people compare sentences by, and none that are openly licensed were at hand. Every sentence is
followed by variants of it (another subject, object, colour or place, a passive, a negation, less detail), since what
sets a sentence apart from its near neighbors is hardest to learn from text that has none. What happens to stand in a
file to measure on is left out.
"""

import random
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Verb:
    """A verb's forms, and its object."""

    base: str
    third: str
    progressive: str
    participle: str
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """Who does what to what, and where."""

    who: str
    count: str  # "" for one
    adjective: str
    detail: str
    verb: Verb
    object: str
    place: str

    @property
    def subject(self) -> str:
        """Give the subject with its article or number."""
        noun = plural(self.who) if self.count else self.who
        bare = " ".join(part for part in (self.count, self.adjective, noun) if part)
        return " ".join(part for part in (bare if self.count else article(bare), self.detail) if part)

    @property
    def auxiliary(self) -> str:
        """Give the form of "to be" that goes with it."""
        return "are" if self.count else "is"

    def told(self, form: str) -> str:
        """Tell the scene in one of the forms."""
        doing = " ".join(part for part in (self.verb.progressive, self.object, self.place) if part)
        verb = self.verb.base if self.count else self.verb.third
        does = " ".join(part for part in (verb, self.object, self.place) if part)
        sentences = {
            "is": f"{self.subject} {self.auxiliary} {doing}",
            "caption": f"{self.subject} {doing}",
            "does": f"{self.subject} {does}",
            "there": f"there {self.auxiliary} {self.subject} {doing}",
            "not": f"{self.subject} {self.auxiliary} not {doing}",
            "no": f"there is no {self.who} {doing}",
            "nobody": f"nobody is {doing}",
        }
        if form == "passive" and self.object.split(" ")[0] in {"a", "an", "the", "some"}:
            thing, _, rest = self.object.partition(" into ")
            into = f" into {rest}" if rest else ""
            return sentence(f"{thing} is being {self.verb.participle}{into} by {self.subject} {self.place}".strip())
        return sentence(sentences.get(form, sentences["is"]))


def sentence(text: str) -> str:
    """Write words as a sentence."""
    return f"{text[0].upper()}{text[1:]}."


def article(words: str) -> str:
    """Put the right article before a noun."""
    return f"{'an' if words[0] in 'aeiou' and not words.startswith('uni') else 'a'} {words}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return str(WORDS["plurals"].get(noun, f"{noun}s"))


@click.command(help=__doc__)
@click.argument("count", type=click.IntRange(min=1))
@click.argument("measured", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(count: int, measured: Path) -> None:
    """Write scenes and their variants."""
    rng = random.Random(0)  # noqa: S311  # no secret depends on it
    verbs = [_verb(forms, objects) for forms, objects in WORDS["verbs"].items()]
    left_out, told = _measured(measured), dict[str, None]()
    while len(told) < count:
        texts = _thing(rng) if rng.random() < 0.12 else _told(_scene(rng, verbs), rng, verbs)
        told.update(dict.fromkeys(text for text in texts if _bare(text) not in left_out))
    click.echo("\n".join(list(told)[:count]))


def _verb(forms: str, objects: Sequence[str]) -> Verb:
    base, third, progressive, participle = forms.split()
    return Verb(base, third, progressive, participle, tuple(objects))


def _measured(folder: Path) -> set[str]:
    """Give the letters and digits of every field of every table in a folder."""
    lines = (line for file in sorted(folder.rglob("*.tsv")) for line in file.open(encoding="utf-8"))
    return {_bare(field) for line in lines for field in line.split("\t")}


def _bare(text: str) -> str:
    return re.sub(r"[\W_]", "", text.lower())


def _scene(rng: random.Random, verbs: list[Verb]) -> Scene:
    is_animal = rng.random() < 0.25
    verb = rng.choice([each for each in verbs if not is_animal or each.base in WORDS["animal_verbs"]])
    wearing, colour, garment = rng.choice(["in", "wearing"]), rng.choice(WORDS["colours"]), rng.choice(WORDS["clothes"])
    worn = f"{wearing} {article(f'{colour} {garment}')}"
    return Scene(
        who=rng.choice(WORDS["animals"] if is_animal else WORDS["people"]),
        count=rng.choice(WORDS["counts"]) if rng.random() < 0.25 else "",
        adjective=rng.choice(WORDS["colours"][:8] if is_animal else WORDS["adjectives"]) if rng.random() < 0.3 else "",
        detail="" if is_animal or rng.random() < 0.6 else rng.choice([worn, rng.choice(WORDS["features"])]),
        verb=verb,
        object=rng.choice(verb.objects) if verb.objects else "",
        place=rng.choice(WORDS["places"]) if rng.random() < 0.6 else "",
    )


def _told(scene: Scene, rng: random.Random, verbs: list[Verb]) -> list[str]:
    """Tell a scene, and two or three that are nearly the same."""
    form = rng.choice(["is", "is", "caption", "caption", "does", "there"])
    other = _scene(rng, verbs)
    changes = [
        scene.told("passive"),
        scene.told("not"),
        scene.told(rng.choice(["no", "nobody"])),
        scene.told(rng.choice(["is", "caption", "does", "there"])),
        replace(scene, who=other.who).told(form),
        replace(scene, count=other.count).told(form),
        replace(scene, adjective="", detail="").told(form),
        replace(scene, detail=other.detail).told(form),
        replace(scene, place="").told(form),
        replace(scene, place=other.place).told(form),
        replace(scene, verb=other.verb, object=other.object).told(form),
    ]
    if scene.verb.objects:
        changes.append(replace(scene, object=rng.choice(scene.verb.objects)).told(form))
    if rng.random() < 0.15:
        joined = f"{scene.told('is')[:-1]} {rng.choice(['and', 'while'])} {other.told('is')[:-1].lower()}"
        changes.append(f"{joined}.")
    return [scene.told(form), *rng.sample(changes, rng.randint(2, 3))]


def _thing(rng: random.Random) -> list[str]:
    """Tell of a thing, and of it with one word changed."""
    thing, colour, state = rng.choice(WORDS["things"]), rng.choice(WORDS["colours"]), rng.choice(WORDS["states"])
    other = rng.choice(
        [
            (thing, rng.choice(WORDS["colours"]), state),
            (rng.choice(WORDS["things"]), colour, state),
            (thing, colour, rng.choice(WORDS["states"])),
        ]
    )
    end = rng.choice(
        ["", " and " + article(rng.choice(WORDS["things"])), " with " + article(rng.choice(WORDS["things"])) + " on it"]
    )
    return [
        sentence(f"{article(f'{hue} {what}')} {where}{end}") for what, hue, where in ((thing, colour, state), other)
    ]


if __name__ == "__main__":
    main()
