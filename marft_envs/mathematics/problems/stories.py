"""Sentences of the word problems: each story has a beginning, events and a question.

Rules for a new story: every sentence reads well after any other sentence of the story and with every number from 2 on,
and no sentence reveals a person's gender. {name} and {friend} are persons, {n} is a number, and {m} is the second
number of ``groups``.
"""

from __future__ import annotations

from dataclasses import dataclass

NAMES = (
    "Ada", "Amir", "Anna", "Ben", "Carla", "Chen", "Daniel", "Elif", "Emma", "Farid", "Grace", "Hana", "Ivan", "Jack",
    "Kofi", "Lena", "Luis", "Maya", "Nadia", "Omar", "Priya", "Rosa", "Sam", "Tara", "Victor", "Yuki",
)  # fmt: skip


@dataclass(frozen=True)
class Story:
    """The sentences of one story.

    Attributes:
        start: A first sentence that states a count {n}.
        groups: A first sentence that states {n} groups of {m}.
        more: Two events that add {n}.
        fewer: Two events that subtract {n}.
        times: An event that multiplies the count by {n}.
        ask: The question.
    """

    start: str
    groups: str
    more: tuple[str, str]
    fewer: tuple[str, str]
    times: str
    ask: str


STORIES = (
    Story(
        "{name} has {n} marbles.",
        "{name} has {n} bags with {m} marbles in each.",
        ("{friend} gives {name} {n} more marbles.", "{name} wins {n} marbles in a game."),
        ("{name} gives {n} marbles to {friend}.", "{name} loses {n} marbles on the way home."),
        "Over the summer {name}'s collection grows to {n} times its size.",
        "How many marbles does {name} have now?",
    ),
    Story(
        "A bakery has {n} rolls on the shelf.",
        "A bakery has {n} trays with {m} rolls on each.",
        ("The baker brings {n} fresh rolls from the oven.", "A delivery adds {n} rolls to the shelf."),
        ("A café buys {n} of the rolls.", "{name} buys {n} rolls for a party."),
        "For the weekend the baker raises the number of rolls to {n} times as many.",
        "How many rolls does the bakery have now?",
    ),
    Story(
        "There are {n} passengers on a train.",
        "A train has {n} carriages with {m} passengers in each.",
        ("At the next station {n} people get on.", "A school class of {n} children gets on."),
        ("At the market square {n} people get off.", "A group of {n} hikers gets off."),
        "In the city the train fills up to {n} times as many passengers.",
        "How many passengers are on the train now?",
    ),
    Story(
        "A library shelf holds {n} books.",
        "A library bookcase has {n} shelves with {m} books on each.",
        ("{name} returns {n} books to it.", "The librarian adds {n} new books."),
        ("{friend} borrows {n} of the books.", "The librarian sends {n} old books away."),
        "A donation makes it {n} times as many books.",
        "How many books are there now?",
    ),
    Story(
        "{name} has saved {n} dollars.",
        "{name} worked for {n} hours and was paid {m} dollars for each hour.",
        ("{name} earns {n} dollars by walking a dog.", "A grandparent gives {name} {n} dollars."),
        ("{name} spends {n} dollars on a book.", "{name} pays {n} dollars for a ticket."),
        "In the next months {name} turns this into {n} times as much money.",
        "How many dollars does {name} have now?",
    ),
    Story(
        "{name} picks {n} apples in the orchard.",
        "{name} fills {n} baskets with {m} apples each.",
        ("Then {name} picks {n} more apples.", "{friend} adds {n} apples from another tree."),
        ("The family eats {n} of the apples.", "{name} uses {n} apples for a pie."),
        "By the end of the week {name} has {n} times as many apples.",
        "How many apples does {name} have now?",
    ),
    Story(
        "A farmer has {n} sheep.",
        "A farmer keeps sheep in {n} fields, with {m} sheep in each field.",
        ("In spring {n} lambs are born.", "The farmer buys {n} sheep at the market."),
        ("The farmer sells {n} sheep.", "A neighbour takes over {n} of the sheep."),
        "Some years later the flock is {n} times as large.",
        "How many sheep does the farmer have now?",
    ),
    Story(
        "{name} has {n} stickers in an album.",
        "{name} fills {n} pages of an album with {m} stickers each.",
        (
            "{name} buys a pack with {n} stickers and puts them all in.",
            "{friend} gives {name} {n} stickers for the album.",
        ),
        ("{name} takes out {n} stickers and trades them away.", "{name} peels off {n} stickers for a little brother."),
        "A year later the album holds {n} times as many stickers.",
        "How many stickers are in the album now?",
    ),
    Story(
        "A tank holds {n} litres of water.",
        "{name} pours {n} buckets of {m} litres each into an empty tank.",
        ("Rain adds {n} litres.", "{name} fills in another {n} litres."),
        ("{name} uses {n} litres for the garden.", "A leak lets {n} litres run out."),
        "After a storm there are {n} times as many litres in it.",
        "How many litres of water are in the tank now?",
    ),
    Story(
        "There are {n} cars in a car park.",
        "A car park has {n} rows with {m} cars in each.",
        ("Before noon {n} more cars arrive.", "For a concert {n} cars drive in."),
        ("After work {n} cars leave.", "Later {n} cars drive away."),
        "On Saturday there are {n} times as many cars.",
        "How many cars are in the car park now?",
    ),
    Story(
        "{name} knows {n} words of a new language.",
        "{name} learned {m} words of a new language on each of {n} days.",
        ("In a lesson {name} learns {n} more words.", "A song teaches {name} {n} new words."),
        (
            "During the holidays {name} forgets {n} words.",
            "{name} mixes up {n} of the words and no longer counts them.",
        ),
        "After a year abroad {name} knows {n} times as many words.",
        "How many words does {name} know now?",
    ),
    Story(
        "A school club has {n} members.",
        "A school club has {n} teams of {m} members each.",
        ("In autumn {n} new members join.", "{name} persuades {n} classmates to join."),
        ("At the end of term {n} members leave.", "When exams begin, {n} members drop out."),
        "After a big win the club grows to {n} times its size.",
        "How many members does the club have now?",
    ),
    Story(
        "{name} bakes {n} cookies.",
        "{name} bakes {n} trays of {m} cookies each.",
        ("{friend} brings {n} more cookies.", "{name} bakes another {n} cookies."),
        ("The guests eat {n} cookies.", "{name} gives {n} cookies to the neighbours."),
        "For the school fair {name} then raises the number of cookies to {n} times as many.",
        "How many cookies are there now?",
    ),
    Story(
        "A shop has {n} umbrellas in stock.",
        "A shop receives {n} boxes with {m} umbrellas in each.",
        ("The shop orders {n} more umbrellas, and they arrive.", "Customers bring back {n} umbrellas."),
        ("On a rainy day {n} umbrellas are sold.", "The shop sends {n} faulty umbrellas back to the maker."),
        "Before winter the stock is raised to {n} times as many umbrellas.",
        "How many umbrellas does the shop have now?",
    ),
)
