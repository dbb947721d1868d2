"""Words that may follow a number without changing its value: nouns that are counted, colours, and a few others.

Only these words, and units, are dropped from an answer. Any other word after a number ("plus one", "squared", "is
wrong") may change its value. The nouns are those that follow numbers in word problems for schools.
"""

from __future__ import annotations

_NOUNS = """
accessories accidents acorns acres activities actors administrators adults afternoons airplanes albums aliens
alligators alpacas amoebas amulets angles animals antacids antlers ants apartments appearances appetizers apples
appliances applications appointments apps aprons aquariums arcs areas arenas armchairs arms arrangements arrays
artichokes articles artifacts artworks ascents asparagus athletes attempts attendees attributes audiobooks aunts
autobiographies avocados awards axes babies backpacks badges bagels baggies bags baguettes bales balloons ballops
balls bananas bandages bands banks baps barrels barrettes bars baseballs basketballs baskets batches bathrooms bats
batteries beaches beads beakers beans bears beavers bedbugs bedrooms beds bees beetles beignets belts benches berets
berries bicycles bids bikes billboards bills binders biographies birches birdhouses birds biscuits blackbirds
blankets blanks blisters blocks blouses blueberries boards boas boats bodies bollards bolts bones bonnets bookcases
books bookshelves bottlecaps bottles bounces bouquets bowlers bowlfuls bowls boxes boxwoods boys bracelets braids
branches bread breakfasts breaks bricks bridesmaids bridges brochures broomsticks brothers brownies browsers bubbles
buckets bugs builders buildings bulbs bunches bundles bunnies buns burgers burritos burrs buses bushels bushes
businesses butchers butter butterflies buttons buyers cabinets cages cake cakes calculators calls calories camels
cameras campers candidates candies candles canes cannolis canoes cans cantaloupes cappuccinos caps capsules captains
caramels caravans cardinals cards carnations carpenters carpets carriages carrots cars cartons cases cash castles
categories caterpillars cats cattle cavities ceilings cells centerpieces centers centimeters cents chairs champions
change changes channels chapters characters charts cheerleaders cheese cheesecakes cheetahs chefs cherries chests
chickens chicks children chimes chimichangas chipmunks chips chives chocolates choices chords chores circles
citations cities citizens clams clarinets classes classmates classrooms claws clerks clients cliffs clippings clips
cloaks clothes clotheslines clothing clouds clovers cloves clowns clubs clusters coaches coals coats cobras coconuts
coffees coins collectors colleges colorings colors columns combinations comics commercials companies compartments
competitions compositions computers cones connections connectors consonants contacts containers contestants contracts
convertibles cookies coordinates copies corn corners corns cougars coughs counselors counters counties countries
counts coupons courses cousins cows crabs crackers crafts cranberries craters crates crawls crayons creatures credits
crew crickets criminals crocodiles croissants crops crosswalks croutons crows crunches cubes cucumbers cupcakes cups
curlers curves customers cuts cuttlebones cycles cylinders daisies dancers dandelions daps darts daughters days
decimeters decisions decks decorations deer deers defenders degrees delegates deliveries demerits descents desks
desserts devices diagonals dials diamonds diapers diaries dimensions dimes dinners dips discounts dishes distances
dividers divisors doctors dogs dollars dolls dolphins dominoes donations donuts doors doses dots doughnuts downloads
dragons drawings dreadnoughts dreams dresses drinks drips driveways dromedaries drops drummers drums dryers ducklings
ducks dumplings dwarves earrings ears edges eels eggplants eggs elements elephants elves emails employees emus
enchiladas endpoints enemies engineers engines entertainers entrees entries envelopes episodes erasers errors
espressos essays euros events exams exercises expeditions eyes faces factors fairies fallops falls families fans
farmhands farms farthings faucets feathers feedings feet females fences ferns fields fifth-graders figures figurines
files filets fillets fillings finches fingers firecrackers firefighters fireflies fires fireworks fish fishes flags
flagstones flamingoes flashlights flats flavors fleas flecks flicks flies flights flips flocks floors flour
flowerbeds flowers flutes flyers folders foldings followers footballs footprints forks forms foxes frames free-throws
friends fries frogs fronds fruit fruits funds furlongs furniture galleries gallons games gardenias gardens garments
gates gears geckos geese gems gemstones geraniums gerbils gharials gifts gigabytes gigs gingerbreads giraffes girls
glasses gnomes goalies goals goats grades graduates grains grams granddaughters grandkids grandparents grapes graphs
grasshoppers gremlins groups guards guesses guests guides guitars gumballs guns guppies gusts haircuts hairs halls
hamburgers hamsters handfuls hands handshakes harbors hares hats hay heads hearts hectares heights helmets hens
hexagons highlighters hikes hits hives hogs holes homes homework honeydews hoodies hoots hops horns horses horseshoes
hoses hospitals hotdogs hours households houses humans humps hushpuppies huskies iguanas inches individuals
ingredients inhabitants inpatients insects instances instructions instructors instruments integers intersections
intersects intervals invitations irises islands issues items jackets jaguars jars jeans jellybeans jerseys jewels
jobs joggers jokers jokes jugs juice juices jumpers jumps juniors kangaroos kernels kettles keyboards keys kids
kilobytes kilograms kilometers kilos kilowatts kindergartners kinds kings kitchens kits kittens kiwis knick-knacks
knicks knives knots koalas ladders ladies ladybugs lakes lambs lamps lanes laps laptops lattes lawns lawyers layers
leads legos legs leis lemons leopards lessons letters levels licks lightbulbs lighters lights ligs lilacs lilies
limbs limes lines lineups links lions lists liters lizards llamas loads loaves loggers lollipops lunches lychees
macarons macaroons machines magazines maggots magnets magpies mails males mambas managers mangoes mangos marathons
marbles marigolds markers marks marshmallows mascots masks matchboxes matches matchsticks mathematicians matrices
mats meals measures meatballs medals medians meerkats megabits megabytes melons members memos men messages meters
metres mice microphones miles milk milkshakes milligrams milliliters millimeters millipedes minerals minibusses
minnows minutes mirrors mistakes models money monitors monkeys monsters motorcycles mountains movements movies
muffins mugs mushrooms musicians nails napkins naps natives necklaces neighborhoods neighbors nephews newborns
newspapers nickels nieces nights non-teachers noodles noses notebooks notes nougats novels nuggets numbers nurses
nuts oaks objects offers officers offices ohms oil olives omelets onions options oranges orchards orchids orcs
orderings orders oreos ounces outcomes outfits oxen oysters packages packets packings packs pages pails paint
painters paintings pairings pairs palindromes pallets pamphlets pancakes pandas panels pans pansies pants papayas
paperclips papers paragraphs parakeets parallelepipeds parents parks parrots parsecs parsnips participants partitions
partners parts passengers passes pastries patches patients patrons patterns pauses paws paychecks payments peaches
peanuts pearls pears pebbles pencils penguins pennies pens pentagons people peppers periods permutations persons
pesetas pesos petals pets petunias pfennigs phones photographs photos phrases pianists pickles pictures pie pieces
pies pigeons piglets pigs piles pillows pills pineapples pinecones pines pins pints pipes pistachios pitches pixels
pizzas places planes planets planks plants plates players playlists plots plugs plums pockets pods pointers points
poles pollywogs pomegranates pomelos poodles pools popsicles portions portraits positions possibilities postcards
posters posts potatoes pots pouches pounds presents pretzels printers prints prizes probabilities problems professors
profit programs promotions properties providers puffs pugs pull-ups pumpkins pumps punches pupils puppies pups purses
push-ups pushups puzzles pyramids pythons quadrants quadrilaterals quarts questions quiches quilts quizzes rabbits
racers races rackets racquets radians radishes raisins rands ranges ranks raspberries rats rays razors reams recipes
records rectangles referees regions relatives repetitions reports representations representatives reps requests
requirements residents restaurants results returns revolutions rhinestones rhinos ribbons rice riddles riders rides
ridges ring-binders rings roads robes robins robots rocks rodents rods roles roll-ups rolls roofs roommates rooms
roosters ropes roses rotations rounds routes rows rubies ruffles rugs rungs runners sacks sails salads sales samples
sandcastles sandwiches saplings sapphires sauces sausages savings scallops scarves schools scientists scissors scoops
scouts screams screens screws scrunchies seagulls seahorses seashells seasons seatings seats seconds sections sectors
seedlings seeds segments selections semesters semicircles seniors sentences sequences sequins services servings
sessions sets settings shapes shares sharks sheep sheets shells shelves shifts shingles shipments shirts shoes
shoppers shorts shots showers siblings sides signatures singers sips sisters sit-ups sites situps sizes skeins
skeletons skips skirts skittles slacks sleeves slices slips slots smartphones smoothies smores snacks snails snakes
snapdragons sneakers snowballs snowflakes soaps socks sodas sofas soldiers solids solutions songs sonnets sons
sorcerers sours souvenirs spaces spades sparklers sparrows spears specialists species speeds spheres spiders
spiderwebs spinners spins spokes spools spoonfuls spoons sports spots sprigs sprinters squads squares squirrels
stables stacks staff stages stairs stalks stamps stanzas staplers starfishes stars starters states stations statues
steaks stems steps stickers sticks stingrays stitches stones stools stoplights stops stores stories storks strands
strawberries straws streetlights streets strings stripes strips strokes students stuffies sub-branches subcomittees
subjects subscribers subscriptions subsections subsets successes suckers sugar suggestions suitcases suits sundaes
sunflowers supplies surfers surveys swallows swans sweaters sweatshirts sweets switches systems tables tablespoons
tabs tacks tacos tadpoles tails tangerines tanks taps tarantulas targets tasks tattoos taxis teachers teacups
teammates teams tears teas teaspoons teddies teenagers tees teeth televisions temperatures tents terriers teslas
tests tetras textbooks texts things third-graders thorns three-pointers throws thumbtacks tickets ticks ties tigers
tiles time-outs tins tips tires tissues toads toddlers toenails toes toilets tokens tomatoes tonnes tons tools
toothbrushes toothpicks toppings tops touchdowns tourists tours towels towers towns toys tractors trains transistors
trays treasures treatments treats trees triangles tricks tricycles tries trikes trips trolls trombones trophies
trouts truckloads trucks truffles trumpets tubes tubs tulips tumblers tune-ups turkeys turtles twigs types typists
umbrellas uncles unicorns uniforms units urns utensils vacations vaccines values vampires vans vases vegetables
vehicles vents venues vertices vessels vets vibrations videos viewers vines violins visitors visits vlogs volumes
volunteers voters votes vowels waiters waits wallops walls walnuts wands washers washes watches water watermelons
watts ways weasels websites wedges weeds weekdays weekends weeks weights werewolves whales wheat wheels whiskers
whistlers whiteboards widgets wigs windows wings winners wipes wolves wombats women woodblocks words work-days
workdays workers worksheets worms wrappers yaps yards years yields yogurts yolks zebras zits zombies zucchinis
"""
_SINGULAR = frozenset(
    ["person", "child", "man", "woman", "foot", "goose", "mouse", "tooth", "ox", "profit", "degree", "rad", "radian"]
)
_COLOURS = "red blue green yellow white black brown pink purple orange gray grey silver golden"
_ADJECTIVES = (
    "new old big small large little different distinct possible full empty whole remaining total solid straight"
)
_OTHERS = (
    "of the a an in on per each every altogether overall total left remaining all his her "
    "their my our your its long wide tall high deep old percentage"
)

NOUNS = frozenset(_NOUNS.split())
_OTHER_WORDS = frozenset(f"{_COLOURS} {_ADJECTIVES} {_OTHERS}".split())


def is_neutral(word: str) -> bool:
    """Return whether a word does not change the value of a number before it."""
    return word.casefold() in _OTHER_WORDS or is_noun(word)


def is_noun(word: str) -> bool:
    """Return whether a word is one of the nouns, singular or plural."""
    word = word.casefold()
    if word in NOUNS or f"{word}s" in NOUNS or word in _SINGULAR:
        return True
    if word.endswith(("s", "x", "z", "ch", "sh", "o")) and f"{word}es" in NOUNS:
        return True
    return (word.endswith("y") and f"{word[:-1]}ies" in NOUNS) or (word.endswith("f") and f"{word[:-1]}ves" in NOUNS)
