'use strict';
document.documentElement.classList.add('js');

/** Puts the rows of a drawing one under the other, in this order and without the hidden ones. */
function stack(drawing, order, hidden) {
  const rows = new Map();
  for (const row of drawing.querySelectorAll('g.row')) rows.set(row.dataset.entrant, row);
  let top = Number(drawing.dataset.rows);
  for (const entrant of order) {
    const row = rows.get(entrant);
    if (!row) continue;
    if (hidden.has(entrant)) {
      row.setAttribute('display', 'none');
      continue;
    }
    row.removeAttribute('display');
    row.setAttribute('transform', `translate(0 ${top})`);
    drawing.append(row);
    top += Number(row.dataset.height);
  }
  const width = drawing.viewBox.baseVal.width;
  drawing.setAttribute('height', top + 8);
  drawing.setAttribute('viewBox', `0 0 ${width} ${top + 8}`);
}

/** The figures that an entrant is sorted by; the better the smaller. */
function keysOf(box) {
  const keys = new Map();
  for (const part of box.dataset.keys.split(' ')) {
    const [name, value] = part.split(':');
    keys.set(name, Number(value));
  }
  return keys;
}

function setUp(race) {
  const metric = race.querySelector('[data-control="metric"]');
  const sort = race.querySelector('[data-control="sort"]');
  const boxes = [...race.querySelectorAll('[data-control="show"]')];
  const said = race.querySelector('.said');
  if (!metric || !sort) return;
  const rows = [...race.querySelectorAll('tr[data-entrant]')];
  const drawings = [...race.querySelectorAll('svg[data-rows]')];
  const points = [...race.querySelectorAll('g.point')];
  const keys = new Map(boxes.map((box) => [box.dataset.entrant, keysOf(box)]));
  const nameOf = (row) => row.cells[0].textContent;

  function choose() {
    for (const panel of race.querySelectorAll('.panel')) {
      panel.classList.toggle('chosen', panel.dataset.metric === metric.value);
    }
  }

  function compare(a, b) {
    if (sort.value === 'name') return nameOf(a).localeCompare(nameOf(b));
    const [x, y] = [a, b].map((row) => keys.get(row.dataset.entrant).get(sort.value) ?? Infinity);
    return x === y ? a.dataset.entrant - b.dataset.entrant : x - y;
  }

  function arrange() {
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.dataset.entrant));
    rows.sort(compare);
    for (const row of rows) {
      row.hidden = hidden.has(row.dataset.entrant);
      row.parentNode.append(row);
    }
    const order = new Set(rows.map((row) => row.dataset.entrant));
    for (const drawing of drawings) stack(drawing, order, hidden);
    for (const point of points) {
      if (hidden.has(point.dataset.entrant)) point.setAttribute('display', 'none');
      else point.removeAttribute('display');
    }
  }

  const label = (list) => list.selectedOptions[0].textContent;
  metric.addEventListener('change', () => {
    // A reader who selects a figure wants to see the leader by that figure.
    sort.value = metric.value;
    choose();
    arrange();
    said.textContent = `Shown: ${label(metric)}, the best first.`;
  });
  sort.addEventListener('change', () => {
    arrange();
    said.textContent = `Sorted by ${label(sort)}, the best first.`;
  });
  for (const box of boxes) {
    box.addEventListener('change', () => {
      arrange();
      const shown = boxes.filter((other) => other.checked).length;
      said.textContent = `${shown} of ${boxes.length} shown.`;
    });
  }
  choose();
}

/** Boxes that show and hide an allocator in all curves of a section. */
function setUpCurves(section) {
  const curves = [...section.querySelectorAll('g.curve')];
  const names = [...new Set(curves.map((curve) => curve.dataset.name))];
  const said = section.querySelector('.said');
  const boxes = names.map((name) => {
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = true;
    box.autocomplete = 'off';
    box.addEventListener('change', () => {
      for (const curve of curves.filter((curve) => curve.dataset.name === name)) {
        if (box.checked) curve.removeAttribute('display');
        else curve.setAttribute('display', 'none');
      }
      said.textContent = `${boxes.filter((other) => other.checked).length} of ${names.length} shown.`;
    });
    // Shows the marker beside the name, so that narrow screens, on which drawings are cut off, also have a legend.
    const curve = curves.find((one) => one.dataset.name === name);
    const label = document.createElement('label');
    label.innerHTML = `<svg class="${curve.getAttribute('class')}" viewBox="-7 -7 14 14" aria-hidden="true">
      <path d="${curve.dataset.mark}" fill="currentColor"/></svg>`;
    label.prepend(box);
    label.append(name);
    section.querySelector('fieldset').append(label);
    return box;
  });
}

for (const section of document.querySelectorAll('[data-curves]')) setUpCurves(section);

/** Whether the browser can unpack what the page carries. */
const inflates = 'DecompressionStream' in window;

/** What an element of the page carries, compressed as it is. */
function packed(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  return new Blob([bytes], { type: 'application/gzip' });
}

function inflated(id) {
  return new Response(packed(id).stream().pipeThrough(new DecompressionStream('gzip')));
}

/** The packed drawings of folded races; null until they are unpacked. */
let drawings = null;

/** Draws a race and lets its reader arrange it, when it is first looked at. */
function show(race) {
  const boxes = race.querySelectorAll('[data-drawing]');
  if (race.dataset.race === 'shown' || (boxes.length > 0 && drawings === null)) return;
  race.dataset.race = 'shown';
  for (const box of boxes) box.innerHTML = drawings[box.dataset.drawing] ?? '';
  setUp(race);
}

async function unpack() {
  const text = inflates && document.getElementById('drawings') ? await inflated('drawings').text() : '';
  drawings = text.split('\n');
  for (const race of document.querySelectorAll('details[data-race]')) {
    race.addEventListener('toggle', () => show(race));
    if (race.open) show(race);
  }
}

for (const race of document.querySelectorAll('section[data-race]')) show(race);
unpack();

/** Saves a result. A browser that cannot inflate it saves what the page carries. */
async function save(id, name) {
  const data = inflates ? await inflated(id).blob() : packed(id);
  const address = URL.createObjectURL(data);
  const link = document.createElement('a');
  link.href = address;
  link.download = inflates ? name : `${name}.gz`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

for (const button of document.querySelectorAll('button[data-download]')) {
  const { download, name } = button.dataset;
  button.addEventListener('click', () => save(download, name));
}

/** What was opened to be printed. */
const opened = [];

addEventListener('beforeprint', () => {
  for (const folded of document.querySelectorAll('details:not([open])')) {
    if ('race' in folded.dataset) show(folded);
    folded.open = true;
    opened.push(folded);
  }
});

addEventListener('afterprint', () => {
  for (const folded of opened.splice(0)) folded.open = false;
});
