// The chart of the overview answers: values under the pointer and by keyboard, a table of them, and a part that is dragged
// or chosen by keys becomes what the page is about. After scene.mjs: node test/chart.mjs CONSOLE NAME PASSWORD
import assert from 'node:assert/strict';
import { open, reach, settled } from './session.mjs';

const [base, name, password] = process.argv.slice(2);
const { browser, page, errors } = await open(base, name, password);
const PLOT = '.chart .plot';
const place = () => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split('?')[1])));
const zoomed = () => page.waitForFunction(() => /[?&]from=\d+/.test(location.hash));
const requests = async () => Number((await page.locator('.figure .value').first().innerText()).replaceAll(/\D/g, ''));
const begin = async () => {
  await page.goto('about:blank');
  await page.goto(`${base}/#/overview?range=15m`);
  await reach(page, '.uplot canvas');
  await settled(page);
};

// The table has every step, and sums up to what the page counts.
await begin();
await page.click('.chart summary');
await reach(page, '.chart table');
const rows = await page.locator('.chart tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
assert.equal(rows.length, 15);
const sum = (cells) => cells.slice(1).reduce((all, cell) => all + Number(cell.replaceAll(/\D/g, '')), 0);
const all = rows.reduce((total, row) => total + sum(row), 0);
assert.ok(all > 0 && all <= await requests(), `${all} of ${await requests()}`);

// By keyboard: one step after the other, as the table has it, to the ends and no further.
await page.focus(PLOT);
const value = () => page.getAttribute(PLOT, 'aria-valuetext');
await page.keyboard.press('Home');
assert.ok((await value()).startsWith(rows[0][0]), `${await value()} is not of ${rows[0][0]}`);
await page.keyboard.press('ArrowLeft');
assert.equal(await page.getAttribute(PLOT, 'aria-valuenow'), '0');
await page.keyboard.press('End');
await page.keyboard.press('ArrowRight');
assert.equal(await page.getAttribute(PLOT, 'aria-valuenow'), '14');
await page.keyboard.press('ArrowLeft');
assert.ok((await value()).startsWith(rows[13][0]));
assert.match(await value(), /Passed \d+, Would be blocked \d+, Blocked \d+/);

// Under the pointer.
const box = await page.locator('.uplot .u-over').boundingBox();
const x = (step) => box.x + (box.width * (step + 0.5)) / 15;
await page.mouse.move(x(7), box.y + 20);
await page.waitForFunction(([plot, moment]) => document.querySelector(plot).getAttribute('aria-valuetext').startsWith(moment), [PLOT, rows[7][0]]);
assert.ok((await page.locator('.chart .moment').innerText()).includes(rows[7][0]));

// A part that is dragged is what the page is about: whole steps, in the URL, and its events are those of the part.
await page.mouse.move(x(12), box.y + 20);
await page.mouse.down();
await page.mouse.move(x(13), box.y + 20, { steps: 4 });
await page.mouse.move(x(14), box.y + 20, { steps: 4 });
await page.mouse.up();
await zoomed();
const dragged = await place();
assert.equal(Number(dragged.to) - Number(dragged.from), 180);
assert.equal(Number(dragged.from) % 60, 0);
await reach(page, '.page-head .tools button:has-text("–")');
await reach(page, '#top-class .bars a');
await settled(page);
const href = await page.getAttribute('#top-class .bars a', 'href');
assert.match(decodeURIComponent(href), /time\+>=\+20\d\d.*time\+<\+20\d\d/);
assert.equal(await page.locator('.chart tbody tr').count() || 3, 3);
// Shared, it shows the same; a range up to now leaves it.
const shared = page.url();
await page.goto('about:blank');
await page.goto(shared);
await reach(page, '.page-head .tools button:has-text("–")');
await page.click('.page-head .tools .tabs button:has-text("15 minutes")');
await page.waitForFunction(() => !location.hash.includes('from='));

// The same by keys.
await begin();
await page.focus(PLOT);
await page.keyboard.press('End');
await page.keyboard.press('Shift+ArrowLeft');
await page.keyboard.press('Shift+ArrowLeft');
assert.match(await value(), /Enter shows only this part/);
await page.keyboard.press('Enter');
await zoomed();
const chosen = await place();
assert.equal(Number(chosen.to) - Number(chosen.from), 180);
assert.deepEqual(errors, []);
await browser.close();
console.log(`${rows.length} steps have their values under the pointer, by keyboard and in a table; a part of them is zoomed: passed`);
