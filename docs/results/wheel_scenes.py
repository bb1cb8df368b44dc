"""Makes up what captions tell: who does what to what and where, and the same with one thing changed.

    python docs/results/wheel_scenes.py COUNT > scenes.txt

Captions are half of what people compare sentences by, and none that are openly licensed were at hand. Every sentence is
followed by variants of it (another subject, object, colour or place, a passive, a negation, less detail), since what sets a
sentence apart from its near neighbours is hardest to learn from text that has none.
"""

import random
import sys
from dataclasses import dataclass, replace

PEOPLE = (
    "man woman boy girl child toddler baby person guy lady teenager kid worker cyclist skier surfer chef cowboy clown soldier "
    "policeman firefighter fisherman farmer teacher nurse doctor bride musician singer dancer climber skateboarder runner "
    "player tourist waiter student grandmother grandfather painter carpenter swimmer boxer drummer guitarist pianist"
).split()
ANIMALS = (
    "dog puppy cat kitten horse cow sheep goat bird elephant monkey panda tiger lion bear duck squirrel rabbit hamster turtle "
    "parrot deer pig chicken camel giraffe dolphin wolf fox lizard"
).split()
ALIKE = "young old tall small little big elderly smiling tired barefoot".split()
COLOURS = "red blue black white green yellow brown orange pink grey purple dark".split()
CLOTHES = "shirt hat jacket dress coat cap scarf suit sweater helmet skirt uniform t-shirt hoodie vest raincoat swimsuit".split()
FEATURES = (
    "with long hair;with a beard;with curly hair;with blond hair;wearing sunglasses;wearing glasses;with a backpack;in jeans;"
    "with an umbrella;with a camera;with a tattoo;wearing headphones;without a shirt;in a wheelchair"
).split(";")
PLACES = (
    "on the beach;in a park;on the grass;in the snow;in a field;on the street;in the kitchen;at a table;near a lake;in the water;"
    "on a bench;on a couch;in front of a building;on a stage;in the rain;under a tree;by the river;on a mountain;in a restaurant;"
    "at a bus stop;on a roof;in the forest;on a boat;in a classroom;at the market;in an office;in a swimming pool;on a bridge;"
    "next to a car;behind a fence;in the garden;at the airport;in a gym;on the sidewalk;near a window;on the floor;in a bathtub;"
    "in the desert;at a party;in a stadium;on a train;in the mud;at night;in the sun;in the street;outside;indoors;through the city"
).split(";")
THINGS = (
    "car bus truck bicycle motorcycle train boat plane chair table couch bed lamp clock vase bench umbrella suitcase laptop phone "
    "television bottle cup plate bowl pizza sandwich cake banana apple book bag kite balloon statue fountain sign tent ball sofa "
    "desk toilet sink refrigerator surfboard skateboard guitar piano candle basket bucket ladder"
).split()
STATES = (
    "parked;lying;standing;sitting;on a table;on the ground;hanging on a wall;under a tree;on a wooden floor;next to a window;"
    "in a small room;in front of a house;on a shelf;covered with snow;full of flowers;near the water;in the middle of a road"
).split(";")
# A verb, its forms, and what it may be done to; nothing for verbs that need nothing.
VERBS = """
run runs running run:
jump jumps jumping jumped:
sleep sleeps sleeping slept:
dance dances dancing danced:
swim swims swimming swum:
walk walks walking walked:
sit sits sitting sat:
stand stands standing stood:
laugh laughs laughing laughed:
smile smiles smiling smiled:
cry cries crying cried:
sing sings singing sung:
rest rests resting rested:
wave waves waving waved:
exercise exercises exercising exercised:
pose poses posing posed:
fall falls falling fallen:
crawl crawls crawling crawled:
play plays playing played:the guitar,the piano,the flute,the drums,the violin,the trumpet,soccer,basketball,tennis,chess,cards,a video game
ride rides riding ridden:a horse,a bicycle,a motorcycle,a skateboard,a camel,an elephant,a bus,a wave,a scooter
slice slices slicing sliced:an onion,a potato,a tomato,a carrot,some bread,a cucumber,some meat,a lemon
peel peels peeling peeled:a potato,an orange,a banana,a carrot,an apple,some shrimp
cook cooks cooking cooked:some rice,some pasta,some eggs,a meal,some fish,dinner
fry fries frying fried:some eggs,some meat,some onions,a pancake
stir stirs stirring stirred:a soup,some sauce,a pot of rice,some batter
pour pours pouring poured:water into a glass,oil into a pan,milk into a bowl,coffee into a cup,sugar into a bowl
cut cuts cutting cut:some paper,a piece of wood,the grass,a cake,a rope,some hair
eat eats eating eaten:a sandwich,an apple,a pizza,some cake,an ice cream,some noodles,a banana,some grass
drink drinks drinking drunk:some water,a beer,some milk,a cup of tea,some juice
hold holds holding held:a baby,a ball,a sign,a flag,a cup,a fish,a camera,a stick
throw throws throwing thrown:a ball,a frisbee,a stone,a stick,a net,a knife
catch catches catching caught:a ball,a fish,a frisbee,a bus
kick kicks kicking kicked:a ball,a door,a stone
read reads reading read:a book,a newspaper,a letter,a map,a menu
write writes writing written:a letter,on a blackboard,in a notebook,a song
drive drives driving driven:a car,a truck,a tractor,a bus
wash washes washing washed:the dishes,a car,a dog,some clothes,the windows
brush brushes brushing brushed:a horse,some hair,a cat,the floor
feed feeds feeding fed:a bird,a cow,a baby,some ducks,a horse
pet pets petting petted:a dog,a cat,a rabbit,a lion
chase chases chasing chased:a ball,a cat,a dog,a bird,a rabbit
watch watches watching watched:television,a game,some birds,a parade,the sunset
carry carries carrying carried:a bag,a box,a child,a surfboard,some wood
push pushes pushing pushed:a cart,a stroller,a car,a swing
pull pulls pulling pulled:a rope,a sled,a cart
lift lifts lifting lifted:weights,a box,a child,a barbell
paint paints painting painted:a wall,a picture,a fence,a face
repair repairs repairing repaired:a bicycle,a car,a roof,a shoe
open opens opening opened:a door,a box,a bottle,a window,a present
climb climbs climbing climbed:a tree,a rock,a ladder,a wall,a mountain
take takes taking taken:a photo,a picture of a friend,a nap,a shower
look looks looking looked:at a painting,at the sky,at a phone,through a telescope
talk talks talking talked:on a phone,to a friend,into a microphone,to a crowd
hug hugs hugging hugged:a friend,a dog,a tree,a teddy bear
shoot shoots shooting shot:a gun,an arrow,a basketball
build builds building built:a sandcastle,a house,a snowman,a fire
""".strip().splitlines()
ANIMAL_VERBS = {"run", "jump", "sleep", "swim", "walk", "sit", "stand", "rest", "fall", "eat", "drink", "chase", "catch", "watch", "climb"}
COUNTS = ("two", "three", "several", "a group of", "some", "many", "four")
IRREGULAR = {
    "man": "men", "woman": "women", "child": "children", "person": "people", "policeman": "policemen", "sheep": "sheep",
    "fisherman": "fishermen", "lady": "ladies", "puppy": "puppies", "monkey": "monkeys", "deer": "deer", "wolf": "wolves",
    "fox": "foxes", "baby": "babies", "bus": "buses", "bench": "benches", "couch": "couches", "sandwich": "sandwiches",
}  # fmt: skip


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
        does = " ".join(part for part in (self.verb.base if self.count else self.verb.third, self.object, self.place) if part)
        sentences = {
            "is": f"{self.subject} {self.auxiliary} {doing}",
            "caption": f"{self.subject} {doing}",
            "does": f"{self.subject} {does}",
            "there": f"there {self.auxiliary} {self.subject} {doing}",
            "not": f"{self.subject} {self.auxiliary} not {doing}",
            "no": f"there is no {self.who} {doing}",
            "nobody": f"nobody is {doing}",
        }
        if form == "passive" and self.object and " " in self.object and self.object.split()[0] in {"a", "an", "the", "some"}:
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
    """Give a noun's plural."""
    return IRREGULAR.get(noun, f"{noun}s")


def main() -> None:
    """Write scenes and their variants."""
    rng = random.Random(0)  # noqa: S311  # no secret depends on it
    verbs = [_verb(line) for line in VERBS]
    wanted, told = int(sys.argv[1]), dict[str, None]()
    while len(told) < wanted:
        told.update(dict.fromkeys(_thing(rng) if rng.random() < 0.12 else _told(_scene(rng, verbs), rng, verbs)))
    sys.stdout.write("".join(f"{text}\n" for text in list(told)[:wanted]))


def _verb(line: str) -> Verb:
    forms, _, objects = line.partition(":")
    return Verb(*forms.split(), tuple(filter(None, objects.split(","))))


def _scene(rng: random.Random, verbs: list[Verb]) -> Scene:
    is_animal = rng.random() < 0.25
    verb = rng.choice([each for each in verbs if not is_animal or each.base in ANIMAL_VERBS])
    worn = f"{rng.choice(['in', 'wearing'])} {article(f'{rng.choice(COLOURS)} {rng.choice(CLOTHES)}')}"
    return Scene(
        who=rng.choice(ANIMALS if is_animal else PEOPLE),
        count=rng.choice(COUNTS) if rng.random() < 0.25 else "",
        adjective=rng.choice(COLOURS[:8] if is_animal else ALIKE) if rng.random() < 0.3 else "",
        detail="" if is_animal or rng.random() < 0.6 else rng.choice([worn, rng.choice(FEATURES)]),
        verb=verb,
        object=rng.choice(verb.objects) if verb.objects else "",
        place=rng.choice(PLACES) if rng.random() < 0.6 else "",
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
    thing, colour, state = rng.choice(THINGS), rng.choice(COLOURS), rng.choice(STATES)
    other = rng.choice([(thing, rng.choice(COLOURS), state), (rng.choice(THINGS), colour, state), (thing, colour, rng.choice(STATES))])
    end = rng.choice(["", " and " + article(rng.choice(THINGS)), " with " + article(rng.choice(THINGS)) + " on it"])
    return [sentence(f"{article(f'{hue} {what}')} {where}{end}") for what, hue, where in ((thing, colour, state), other)]


if __name__ == "__main__":
    main()
