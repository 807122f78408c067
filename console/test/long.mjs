// A table of COUNT events that are in the store: the document stays small while it is scrolled to its end, and each row
// is there once. SMOOTH=1 prints how long the frames took.
// node test/long.mjs CONSOLE NAME PASSWORD COUNT
import assert from 'node:assert/strict';
import { open } from './session.mjs';

const [base, name, password, wanted] = process.argv.slice(2);
const count = Number(wanted);
const { browser, page, errors } = await open(base, name, password);
await page.goto(`${base}/#/events?kind=all&filter=${encodeURIComponent('path ^= "/long/"')}`);
await page.waitForSelector('.events-table .body .row');
let rows = 0;
let nodes = 0;
for (let turn = 0; turn < count && rows < count; turn += 1) {
  await page.evaluate(() => { const table = document.querySelector('.events-table [role=table], .events-table.rows, .rows'); table.scrollTop = table.scrollHeight; });
  await page.waitForFunction((before) => Number(document.querySelector('.rows').getAttribute('aria-rowcount')) - 1 > before, rows, { timeout: 10_000 }).catch(() => undefined);
  const now = await page.evaluate(() => ({
    rows: Number(document.querySelector('.rows').getAttribute('aria-rowcount')) - 1,
    nodes: document.querySelectorAll('.rows .row').length,
  }));
  if (now.rows === rows) break;
  rows = now.rows;
  nodes = Math.max(nodes, now.nodes);
}
assert.equal(rows, count);
assert.ok(nodes < 100, `${nodes} rows are in the document`);
// From the top to the end in steps of half a window: the paths are each there once.
const seen = await page.evaluate(async () => {
  const table = document.querySelector('.rows');
  const paths = new Set();
  const frames = [];
  table.scrollTop = 0;
  let last = performance.now();
  for (let top = 0; top <= table.scrollHeight; top += table.clientHeight / 2) {
    table.scrollTop = top;
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    for (const link of table.querySelectorAll('.body .row')) paths.add(link.textContent.match(/\/long\/\d+/)?.[0]);
    frames.push(performance.now() - last);
    last = performance.now();
  }
  frames.sort((a, b) => a - b);
  return { paths: paths.size, p50: frames[frames.length >> 1] / 2, p99: frames[Math.floor(frames.length * 0.99)] / 2, steps: frames.length };
});
assert.equal(seen.paths, count);
if (process.env.SMOOTH) console.log(`${count} rows, at most ${nodes} in the document; ${seen.steps} steps, a frame ${seen.p50.toFixed(1)} ms (p50), ${seen.p99.toFixed(1)} ms (p99)`);
assert.deepEqual(errors, []);
await browser.close();
console.log(`a table of ${count} events: passed`);
