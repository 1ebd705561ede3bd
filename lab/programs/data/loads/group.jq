# Reads all documents, writes each as text and reads it again, and prints the tags of a city that
# sold most. A document that changes on the way is an error.
[inputs] as $all
| if ($all | map(tojson | fromjson)) == $all then . else error("a document has changed") end
| [$all[] | .city as $city | .orders[] | {key: "\($city) \(.tags[])", price}]
| group_by(.key)
| map({key: .[0].key, total: (map(.price) | add)})
| sort_by(-.total, .key)
| length, .[:100]
