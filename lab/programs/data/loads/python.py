"""Typical work of Python scripts: records as JSON, classes, dictionaries, strings, sorting.

With PYTHONMALLOC=malloc, every object except the smallest integers is one call of malloc. The
argument is the number of repetitions; the output depends only on it.
"""

import json
import sys

WORDS = ["allocate", "release", "page", "arena", "slab", "magazine", "span", "class"]


class Random:
    """A linear congruential generator, so that nothing depends on Python's."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 1103515245 + 12345) % 2147483648
        return self.state // 8 % limit


class Customer:
    def __init__(self, name, city):
        self.name = name
        self.city = city
        self.orders = []


class Order:
    __slots__ = ("number", "price", "tags")

    def __init__(self, number, price, tags):
        self.number = number
        self.price = price
        self.tags = tags


def customers(random, count):
    made = []
    for number in range(count):
        word = WORDS[random.below(8)]
        customer = Customer(f"{word} {number}", f"City {random.below(90)}")
        for _ in range(random.below(8)):
            tags = [f"{WORDS[random.below(8)]}-{random.below(500)}" for _ in range(random.below(4))]
            customer.orders.append(Order(random.below(10**6), random.below(10**5) / 4, tags))
        made.append(customer)
    return made


def documents(people):
    text = json.dumps(
        [
            {
                "name": person.name,
                "city": person.city,
                "orders": [
                    {"number": o.number, "price": o.price, "tags": o.tags} for o in person.orders
                ],
            }
            for person in people
        ]
    )
    return text, json.loads(text)


def grouped(people):
    groups = {}
    for person in people:
        for order in person["orders"]:
            for tag in order["tags"]:
                groups.setdefault((person["city"], tag), []).append(order["price"])
    totals = {key: sum(prices) for key, prices in groups.items()}
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:100]


def counted(text):
    counts = {}
    for word in text.replace('"', " ").replace(",", " ").split():
        counts[word] = counts.get(word, 0) + 1
    longest = sorted(counts, key=lambda word: (-counts[word], word))[:50]
    return "/".join(longest).upper(), len(counts)


def main(repetitions):
    random = Random(42)
    check = 0
    for _ in range(repetitions):
        text, people = documents(customers(random, 3000))
        groups = grouped(people)
        words, distinct = counted(text)
        check = (check * 31 + len(text) + len(words) + distinct + round(groups[0][1])) % 2**61
    print("repetitions", repetitions, "check", check)


main(int(sys.argv[1]))
