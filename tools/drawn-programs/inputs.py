#!/usr/bin/env python3
"""inputs.py FOLDER: writes the inputs of all commands in programs.txt, always the same, into an empty folder."""

import math
import os
import random
import struct
import sys
import wave
import zlib

WORDS = [a + b for a in "ka lo mi ne pu ra so ti vu za be do".split() for b in "n r s t nd st lk rm".split()]
CITIES = ["Bergen", "Cork", "Delft", "Evora", "Gent", "Kotor", "Lund", "Narvik"]


def text(draw, lines):
    for _ in range(lines):
        yield " ".join(draw.choice(WORDS) for _ in range(draw.randrange(6, 14)))


def texts():
    draw = random.Random(1)
    lines = list(text(draw, 100000))
    changed = [line for line in lines if draw.random() > 0.02]
    for _ in range(400):
        changed.insert(draw.randrange(len(changed)), "an added line")
    yield "text.txt", "\n".join(lines) + "\n"
    yield "other.txt", "\n".join(changed) + "\n"
    paragraphs = ["\n".join(lines[i : i + 5]) for i in range(0, 30000, 5)]
    yield "page.md", "\n\n".join(f"## Part {i}\n\n{p} **{i}**" for i, p in enumerate(paragraphs)) + "\n"
    parts = (f"<h2>Part {i}</h2>\n<p>{p} <b>{i}</b></p>\n<table><tr><td>{i}</td></tr></table>" for i, p in enumerate(paragraphs))
    yield "page.html", "<html><head><title>Parts</title></head><body>\n" + "\n".join(parts) + "\n</body></html>\n"
    yield "paper.ms", ".TL\nParts\n" + "\n".join(f".NH\nPart {i}\n.LP\n{p}" for i, p in enumerate(paragraphs)) + "\n"


def records():
    draw = random.Random(2)
    rows = [(i, draw.choice(CITIES), draw.randrange(1, 10**6), draw.choice(WORDS)) for i in range(30000)]
    yield "data.csv", "id,city,price,tag\n" + "".join(f"{i},{c},{p},{t}\n" for i, c, p, t in rows)
    items = (f'<item id="{i}"><city>{c}</city><price>{p}</price><tag>{t}</tag></item>' for i, c, p, t in rows)
    yield "data.xml", "<items>\n" + "\n".join(items) + "\n</items>\n"
    yield "style.xsl", """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="text"/><xsl:template match="/items"><xsl:for-each select="item"><xsl:sort select="price" data-type="number"/>
<xsl:value-of select="concat(@id, ' ', city, '&#10;')"/></xsl:for-each></xsl:template></xsl:stylesheet>
"""


def sources():
    functions = range(1500)
    yield "program.c", "int outside(int);\n" + "".join(
        f"""struct type{i} {{ int a, b; struct type{i} *next; const char *name; }};
static int sum{i}(struct type{i} *list, int limit) {{
    int sum = 0;
    for (; list != 0; list = list->next) {{
        if (list->a > limit) sum += list->b * {i + 1}; else sum -= outside(list->a);
        switch (sum % 3) {{ case 0: sum++; break; case 1: sum += {i}; break; default: sum--; }}
    }}
    return sum;
}}
int use{i}(int limit) {{ struct type{i} one = {{ {i}, limit, 0, "type{i}" }}; return sum{i}(&one, limit); }}
"""
        for i in functions
    )
    yield "types.h", "".join(f"struct Type{i} {{ int number; double values[4]; char *name; }};\nint use{i}(struct Type{i} *type, int count);\n" for i in range(200))
    fields = "".join(f"  repeated string field{i} = {i};\n" for i in range(1, 9))
    yield "messages.proto", 'syntax = "proto3";\n' + "".join(f"message Message{i} {{\n{fields}}}\n" for i in range(200))
    yield "data.asm", "section .data\n" + "".join(f"label{i}: dd {i * 7}, label{i // 2} - label{i}\n" for i in range(8000))
    yield "loops.f90", "".join(
        f"subroutine loop{i}(a, n)\n  integer, intent(in) :: n\n  real, intent(inout) :: a(n)\n  integer :: k\n  do k = 2, n\n    a(k) = a(k) * {i + 1}.5 + a(k - 1)\n  end do\nend subroutine\n"
        for i in range(300)
    )
    yield "types.ml", "".join(
        f"type t{i} = A{i} of int | B{i} of t{i} list\nlet rec sum{i} = function A{i} n -> n + {i} | B{i} l -> List.fold_left (fun s x -> s + sum{i} x) 0 l\n" for i in range(600)
    )
    tokens = [f"word{i}" for i in range(400)]
    yield "grammar.y", "%token " + " ".join(t.upper() for t in tokens) + "\n%%\n" + "".join(
        f"rule{i}: {t.upper()} | rule{(i + 1) % 400} {tokens[(i * 7) % 400].upper()} ;\n" for i, t in enumerate(tokens)
    )
    yield "lexer.l", "%%\n" + "".join(f'"{t}"+[a-z]{{0,3}} return {i + 1};\n' for i, t in enumerate(tokens[:60]))
    yield "lexer.re", "int next(const char *YYCURSOR) {\n/*!re2c re2c:define:YYCTYPE = char; re2c:yyfill:enable = 0;\n" + "".join(
        f'"{t}" [a-z]* {{ return {i + 1}; }}\n' for i, t in enumerate(tokens[:100])
    ) + "* { return 0; }\n*/ }\n"
    yield "words.gperf", "%%\n" + "".join(f"{word}{i}\n" for i, word in enumerate(WORDS * 5)) + "%%\n"
    yield "macros.m4", "define(`count', `ifelse($1, 0, `', `$1 count(decr($1))')')dnl\n" + "count(700)\n" * 12


def scripts():
    yield "pi.bc", "scale = 1200\n4 * a(1)\n"
    yield "lists.tcl", """for {set i 0} {$i < 120000} {incr i} { dict set all "key$i" [list $i [expr {$i * 2}]] }
set sum 0
dict for {key pair} $all { incr sum [lindex $pair 1] }
puts $sum
"""
    yield "records.rb", """all = {}
200000.times { |i| all["key#{i}"] = [i, "name#{i % 97}"] }
groups = all.values.group_by { |pair| pair[1] }
puts groups.map { |name, pairs| [name, pairs.sum { |pair| pair[0] }] }.sort.inspect
"""
    yield "tables.lua", """local all = {}
for i = 1, 250000 do all["key" .. i] = { i, "name" .. i % 97 } end
local sums = {}
for _, pair in pairs(all) do sums[pair[2]] = (sums[pair[2]] or 0) + pair[1] end
print(sums.name5)
"""
    yield "records.php", """<?php $all = []; for ($i = 0; $i < 200000; $i++) { $all["key$i"] = [$i, "name" . $i % 97]; }
$sums = []; foreach ($all as $pair) { $sums[$pair[1]] = ($sums[$pair[1]] ?? 0) + $pair[0]; }
ksort($sums); echo json_encode($sums), "\\n";
"""
    yield "factors.gp", "for(i=1,400,factor(10^30+i));print(vecsum(vector(20000,i,sigma(i))))\n"
    yield "surface.gp", "set terminal svg\nset isosamples 250\nsplot sin(x) * cos(y)\n"
    yield "scene.pov", "camera { location <0,2,-6> look_at 0 } light_source { <9,9,-9>, 1 }\n" + "".join(
        f"sphere {{ <{math.sin(i) * 3:.3f},{math.cos(i * 1.7):.3f},{math.sin(i * 0.3) * 3:.3f}>, 0.3 texture {{ pigment {{ rgb <{i % 7 / 7:.2f},0.5,{i % 5 / 5:.2f}> }} }} }}\n"
        for i in range(300)
    )


def problems():
    draw = random.Random(3)
    names = [f"x{i}" for i in range(40)]
    lines = [" + ".join(f"{draw.randrange(1, 90)} {name}" for name in names) for _ in range(5)]
    yield "problem.lp", "Maximize\n obj: " + " + ".join(f"{draw.randrange(1, 90)} {n}" for n in names) + "\nSubject To\n" + "".join(
        f" c{i}: {line} <= {draw.randrange(600, 900)}\n" for i, line in enumerate(lines)
    ) + "Binary\n " + " ".join(names) + "\nEnd\n"
    count, clauses = 240, 1030
    yield "problem.cnf", f"p cnf {count} {clauses}\n" + "".join(
        " ".join(str(v * draw.choice((1, -1))) for v in draw.sample(range(1, count + 1), 3)) + " 0\n" for _ in range(clauses)
    )
    shapes = (f'<circle cx="{draw.randrange(800)}" cy="{draw.randrange(600)}" r="{draw.randrange(3, 60)}" fill="#{draw.randrange(1 << 24):06x}" opacity="0.6"/>' for _ in range(3000))
    yield "drawing.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="600">\n' + "\n".join(shapes) + "\n</svg>\n"


def image():
    draw, width, height = random.Random(4), 800, 600
    rows = []
    for row in range(height):
        if row % 4 == 0:
            line = b"".join(bytes(draw.randrange(256) for _ in range(3)) * 4 for _ in range(width // 4))
        rows.append(line)
    yield "image.ppm", b"P6\n%d %d\n255\n" % (width, height) + b"".join(rows)
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    yield "image.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    bits = bytes(draw.getrandbits(8) & draw.getrandbits(8) for _ in range(800 * 600 // 8))
    yield "bitmap.pbm", b"P4\n800 600\n" + bits


def sound(path):
    with wave.open(path, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(44100)
        values = (int(9000 * math.sin(i * 0.03) + 4000 * math.sin(i * 0.0071 * (1 + i % 2))) for i in range(2 * 44100 * 8))
        file.writeframes(struct.pack(f"<{2 * 44100 * 8}h", *values))


def main():
    folder = sys.argv[1]
    os.makedirs(folder)
    for make in (texts, records, sources, scripts, problems, image):
        for name, content in make():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
    sound(os.path.join(folder, "sound.wav"))


if __name__ == "__main__":
    main()
