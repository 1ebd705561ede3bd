'use strict';

/** Space for a letter and beside a name, and the letters below which a name is left out, as drawn. */
const LETTER = 6;
const BESIDE = 6;
const LETTERS = 3;

/** The function's name: what stands before its amount. */
function nameOf(call) {
  const says = call.querySelector('title').textContent;
  return says.slice(0, says.lastIndexOf(': '));
}

/** Writes a name as far as there is room for it. */
function label(call, left, wide) {
  let text = call.querySelector('text');
  const letters = Math.floor((wide - BESIDE) / LETTER);
  if (letters < LETTERS) {
    text?.remove();
    return;
  }
  if (!text) {
    text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
    const shape = call.querySelector('rect');
    text.setAttribute('y', Number(shape.getAttribute('y')) + Number(shape.getAttribute('height')) - 4);
    text.setAttribute('font-size', 10);
    text.setAttribute('pointer-events', 'none');
    call.append(text);
  }
  const name = nameOf(call);
  text.setAttribute('x', left + BESIDE / 2);
  text.textContent = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
}

/** Draws all functions so that those from one place to another fill the drawing. */
function zoom(drawing, from, to) {
  const width = drawing.viewBox.baseVal.width;
  const at = (place) => Math.min(Math.max((place - from) / (to - from), 0), 1) * width;
  for (const call of drawing.querySelectorAll('g.call')) {
    const { left, right } = call.dataset;
    const [begin, end] = [at(Number(left)), at(Number(right))];
    call.style.display = end > begin ? '' : 'none';
    const shape = call.querySelector('rect');
    shape.setAttribute('x', begin);
    shape.setAttribute('width', Math.max(end - begin - 0.5, 0.3));
    label(call, begin, end - begin);
  }
}

for (const call of document.querySelectorAll('svg g.call')) {
  const { left, right } = call.dataset;
  call.style.cursor = 'zoom-in';
  call.addEventListener('click', () => zoom(call.closest('svg'), Number(left), Number(right)));
}
