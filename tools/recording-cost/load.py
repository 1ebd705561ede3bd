"""Parses and prints JSON. With PYTHONMALLOC=malloc, every object is allocated by malloc."""
import json
import sys

records = [
    {
        "id": number,
        "name": "user%d" % number,
        "tags": ["a%d" % (number + place) for place in range(5)],
        "value": number * 1.5,
        "nested": {"x": number, "y": [number, number + 1, number + 2]},
    }
    for number in range(3000)
]
text = json.dumps(records)
for _ in range(int(sys.argv[1])):
    json.dumps(json.loads(text))
