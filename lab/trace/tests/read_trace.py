"""Reads a trace by docs/trace-format.md alone, and prints counts as JSON. Needs the program zstd."""
import json
import struct
import subprocess
import sys
import zlib

KINDS = ["make", "free", "resize", "free-null", "fail", "free-foreign"]


class Content:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value


def operations(content, count, next_blocks, names, stacks):
    process, block, thread, time = (content.number() for _ in range(4))
    assert next_blocks.get(process, 0) == block, "block numbers continue"
    shapes, frees, shape_at, free_at = [None] * 224, [None] * 8, 0, 0
    for _ in range(count):
        code, kind, size, freed = content.byte(), "make", 0, None
        while code == 0xE6:
            thread, code = content.number(), content.byte()
        stack = -1
        if code == 0xE7:
            stack, code = content.number(), content.byte()
            assert stack < stacks and not 0xE8 <= code and code not in (0xE1, 0xE3, 0xE5)
        if code < 0xE0:
            function, size, _ = shapes[code]
        elif code >= 0xE8:
            kind, function = "free", frees[code - 0xE8]
        else:
            kind, function = KINDS[code - 0xE0], content.byte()
            if kind in ("make", "resize", "fail", "free-foreign"):
                size = content.number()
            alignment = content.number() if kind in ("make", "fail") else 0
            if kind == "make":
                shapes[shape_at], shape_at = (function, size, alignment), (shape_at + 1) % 224
            elif kind == "free":
                frees[free_at], free_at = function, (free_at + 1) % 8
        if kind in ("free", "resize"):
            freed = block - content.number()
            assert 0 <= freed < block, "a freed block was made"
        time += content.number()
        block += kind in ("make", "resize")
        yield kind, process + len(names[function]) + size + (freed or 0) + thread + time + stack + 1
    assert content.at == len(content.data), "the content ends with the last operation"
    next_blocks[process] = block


def main(data):
    assert data[:8] == b"hdtrace\n" and zlib.crc32(data[:12]) == struct.unpack_from("<I", data, 12)[0]
    at, names, next_blocks, kinds, sums, records = 16, [], {}, {}, 0, []
    while at < len(data):
        kind, packed, length, count, total, own = struct.unpack_from("<B3x5I", data, at)
        frame = data[at + 24:at + 24 + packed]
        assert zlib.crc32(data[at:at + 20]) == own and zlib.crc32(frame) == total, "checksums"
        at += 24 + packed
        content = subprocess.run(["zstd", "-dc"], input=frame, capture_output=True, check=True).stdout
        assert len(content) == length
        if kind == 1:
            records += json.loads(content)
            continue
        names = records[0]["recording"]["functions"]
        stacks = sum("stack" in record for record in records)
        for operation, parts in operations(Content(content), count, next_blocks, names, stacks):
            kinds[operation], sums = kinds.get(operation, 0) + 1, (sums * 31 + parts) % (1 << 64)
    print(json.dumps({"kinds": kinds, "sum": sums, "records": len(records)}))


main(open(sys.argv[1], "rb").read())
