// A table of COUNT events that are in the store: the document stays small while it is scrolled to its end, and each row
// is there once. SMOOTH=1 prints how long frames took: while pages were loaded, in a steady scroll, and in jumps.
// node test/long.mjs CONSOLE NAME PASSWORD COUNT
import assert from 'node:assert/strict';
import { open } from './session.mjs';

const [base, name, password, wanted] = process.argv.slice(2);
const count = Number(wanted);
const { browser, page, errors } = await open(base, name, password);
await page.goto(`${base}/#/events?kind=all&filter=${encodeURIComponent('path ^= "/long/"')}`);
await page.waitForSelector('.events-table .body .row');

/** Frames from now on, until they are read. */
const watch = () => page.evaluate(() => {
  globalThis.frames_seen = [];
  let last = performance.now();
  const look = (now) => {
    globalThis.frames_seen?.push(now - last);
    last = now;
    if (globalThis.frames_seen) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
});
const tell = async (what) => {
  const frames = await page.evaluate(() => {
    const seen = globalThis.frames_seen;
    globalThis.frames_seen = null;
    return seen;
  });
  frames.sort((a, b) => a - b);
  const long = frames.filter((each) => each > 50).length;
  const p50 = frames[frames.length >> 1] ?? 0;
  if (process.env.SMOOTH) console.log(`${what}: ${frames.length} frames, p50 ${p50.toFixed(1)} ms, ${long} over 50 ms, worst ${(frames.at(-1) ?? 0).toFixed(0)} ms`);
};

await watch();
let rows = 0;
let nodes = 0;
for (let turn = 0; turn < count && rows < count; turn += 1) {
  await page.evaluate(() => { const table = document.querySelector('.rows'); table.scrollTop = table.scrollHeight; });
  await page.waitForFunction((before) => Number(document.querySelector('.rows').getAttribute('aria-rowcount')) - 1 > before, rows, { timeout: 10_000 }).catch(() => undefined);
  const now = await page.evaluate(() => ({
    rows: Number(document.querySelector('.rows').getAttribute('aria-rowcount')) - 1,
    nodes: document.querySelectorAll('.rows .row').length,
  }));
  if (now.rows === rows) break;
  rows = now.rows;
  nodes = Math.max(nodes, now.nodes);
}
await tell(`${count} rows loaded`);
assert.equal(rows, count);
assert.ok(nodes < 100, `${nodes} rows are in the document`);
// From the top to the end, but of long tables only two thousand windows of them: the paths are each there once, and in
// the order of the table.
const { places, windows } = await page.evaluate(async () => {
  const table = document.querySelector('.rows');
  const places = {};
  const all = Math.ceil(table.scrollHeight / table.clientHeight) * 2;
  const windows = Math.min(all, 2000);
  for (let at = 0; at <= windows; at += 1) {
    table.scrollTop = (at / windows) * (table.scrollHeight - table.clientHeight);
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    for (const row of table.querySelectorAll('.body .row')) places[row.dataset.row] = row.textContent.match(/\/long\/\d+/)?.[0];
  }
  return { places, windows };
});
assert.equal(new Set(Object.values(places)).size, Object.keys(places).length);
if (count <= 2000) assert.equal(Object.keys(places).length, count);
if (process.env.SMOOTH) {
  console.log(`${Object.keys(places).length} rows seen in ${windows} windows, at most ${nodes} in the document`);
  await watch();
  await page.evaluate(async () => {
    const table = document.querySelector('.rows');
    table.scrollTop = 0;
    for (let frame = 0; frame < 1200; frame += 1) {
      table.scrollTop += 400;
      await new Promise(requestAnimationFrame);
    }
  });
  await tell('scrolled by 400 px a frame');
  await watch();
  await page.evaluate(async () => {
    const table = document.querySelector('.rows');
    for (let jump = 0; jump < 300; jump += 1) {
      table.scrollTop = ((jump * 7919) % 300) / 300 * table.scrollHeight;
      await new Promise(requestAnimationFrame);
      await new Promise(requestAnimationFrame);
    }
  });
  await tell('jumps anywhere');
}
assert.deepEqual(errors, []);
await browser.close();
console.log(`a table of ${count} events: passed`);
