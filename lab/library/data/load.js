// Work of Node.js outside V8's own heap: buffers, strings, timers and compressed data.
const zlib = require("zlib");
const crypto = require("crypto");
const rounds = Number(process.argv[2]);
let checksum = 0;
let round = 0;
function step() {
  const rows = [];
  for (let row = 0; row < 200; row++) {
    rows.push({ row, name: "row " + row * round, parts: [round, row, row / 7] });
  }
  const text = JSON.stringify(rows);
  const packed = zlib.deflateSync(Buffer.from(text), { level: 1 });
  checksum += zlib.inflateSync(packed).length;
  checksum += crypto.createHash("sha256").update(packed).digest()[0];
  round += 1;
  if (round < rounds) {
    setImmediate(step);
  } else {
    console.log(checksum);
  }
}
step();
