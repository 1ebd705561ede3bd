"""Writes the inputs of the programs of tools/trace-fidelity/run into the current folder. The inputs
are identical in every run."""

import json
import random

random.seed(7)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["".join(random.choice(LETTERS) for _ in range(random.randrange(3, 11))) for _ in range(4000)]


def text(count):
    return " ".join(random.choice(WORDS) for _ in range(count))


def write(name, content):
    with open(name, "w") as out:
        out.write(content)


ROWS = [
    {"id": i, "name": text(2), "tags": [random.choice(WORDS) for _ in range(5)], "value": random.random()}
    for i in range(30000)
]
write("rows.json", json.dumps(ROWS))
write(
    "rows.xml",
    "<rows>"
    + "".join(f'<row id="{row["id"]}"><name>{row["name"]}</name><value>{row["value"]:.6f}</value></row>' for row in ROWS)
    + "</rows>",
)
write(
    "rows.xsl",
    """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:key name="initial" match="row" use="substring(name, 1, 2)"/>
<xsl:template match="/rows"><out><xsl:for-each select="row"><xsl:sort select="name"/>
<row><xsl:value-of select="concat(name, ' ', count(key('initial', substring(name, 1, 2))))"/></row>
</xsl:for-each></out></xsl:template></xsl:stylesheet>""",
)
write(
    "rows.lua",
    """local rows = {}
for i = 1, 60000 do rows[i] = { id = i, name = "n" .. (i * 7919 % 100003), list = { i, i + 1 } } end
table.sort(rows, function(a, b) return a.name < b.name end)
local length = 0
for round = 1, 3 do
    for _, row in ipairs(rows) do
        row.text = row.name .. "-" .. row.id .. "-" .. round
        length = length + #row.text
    end
end
print(length)""",
)
write(
    "rows.pl",
    """my %rows;
for my $i (1 .. 80000) { push @{$rows{"k" . ($i * 7919 % 50021)}}, { id => $i, text => "row $i" }; }
my $length = 0;
for my $key (sort keys %rows) { $length += length($_->{text}) for @{$rows{$key}}; }
print "$length\\n";""",
)
write(
    "rows.py",
    """import json
index = {}
for row in json.load(open("rows.json")):
    for tag in row["tags"]:
        index.setdefault(tag, []).append((row["name"], row["value"]))
print(sum(len(json.dumps(sorted(rows))) for rows in index.values()))""",
)
write(
    "rows.js",
    """const rows = JSON.parse(require("fs").readFileSync("rows.json"));
const index = new Map();
for (const row of rows) for (const tag of row.tags) index.set(tag, (index.get(tag) || []).concat(row.name));
let length = 0;
for (const names of index.values()) length += JSON.stringify(names.sort()).length;
console.log(length);""",
)
write(
    "rows.sql",
    """pragma cache_size = -200000;
create table rows(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)
insert into rows select i, 'name' || (i * 7919 % 100003), i * 0.5 from n;
create index names on rows(name);
select count(*), sum(length(a.name)) from rows a join rows b on a.name = b.name where b.value > 100;
select count(distinct substr(name, 1, 7)) from rows;""",
)
PAGES = [
    "".join(f"40 {40 + 12 * line} moveto ({text(10)}) show\n" for line in range(60)) + "showpage\n"
    for _ in range(8)
]
write("rows.ps", "%!PS\n/Helvetica findfont 9 scalefont setfont\n" + "".join(PAGES))
CLASSES = [
    f"""struct S{i} {{
    std::map<std::string, std::vector<int>> values;
    int add(int n) {{
        for (int i = 0; i < n; i++) values[std::to_string(i)].push_back(i);
        int sum = 0;
        for (auto &one : values) sum += std::count(one.second.begin(), one.second.end(), {i});
        return sum;
    }}
}};
int f{i}(int n) {{ return S{i}().add(n); }}
"""
    for i in range(12)
]
write(
    "rows.cc",
    "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n" + "".join(CLASSES),
)
COMMITS = []
for commit in range(15000):
    body = text(20)
    COMMITS.append(
        f"commit refs/heads/main\ncommitter A <a@example.org> {1700000000 + commit} +0000\ndata 6\n"
        f"change\nM 100644 inline d{commit % 40}/f{commit % 300}.txt\ndata {len(body)}\n{body}\n"
    )
write("history", "".join(COMMITS))
