// The box of the events: what is pasted is recognised and looked for in all kinds of events, fields and values complete
// themselves, chips are turned and removed by mouse and by keyboard, the time is chosen, and the URL has all of it.
// After scene.mjs and numbers.mjs: node test/search.mjs CONSOLE NAME PASSWORD
import assert from 'node:assert/strict';
import { open, reach, settled } from './session.mjs';

const [base, name, password] = process.argv.slice(2);
const { browser, page, errors } = await open(base, name, password);
const BOX = '[data-filter]';
const filter = () => page.evaluate(() => new URLSearchParams(location.hash.split('?')[1]).get('filter') ?? '');
const kind = () => page.evaluate(() => new URLSearchParams(location.hash.split('?')[1]).get('kind'));
const chips = () => page.locator('.chips .term').allInnerTexts();
const becomes = (text) => page.waitForFunction((wanted) => (new URLSearchParams(location.hash.split('?')[1]).get('filter') ?? '') === wanted, text);
const option = (text) => page.locator(`[role=option]:has-text("${text}")`);
/** What is typed, searched for. */
const search = async (text) => {
  await page.fill(BOX, text);
  await page.press(BOX, 'Enter');
};
const begin = async (place) => {
  await page.goto('about:blank');
  await page.goto(`${base}/#/${place}`);
  await reach(page, BOX);
};

// What is offered first is what Enter looks for; each is looked for in all kinds of events, and finds some.
await begin('events');
await reach(page, '.facets > p.dim');
for (const [typed, note, wanted] of [
  ['192.0.2.99', 'client', '192.0.2.99'], ['/banned', 'path', '/banned'], ['sqli', 'class', 'class = sqli'],
  ['blog.example', 'host', 'host = blog.example'], ['https://shop.example/banned?x', 'host and path', 'host = shop.example and path = /banned'],
  ['sleep(5)', 'text anywhere', '"sleep(5)"'],
]) {
  await begin('events');
  await page.fill(BOX, typed);
  await option(note).first().waitFor();
  // Values of the store are known when they have been asked for.
  await page.waitForFunction((words) => document.querySelector('[role=option] .dim')?.textContent.includes(words), note);
  await page.press(BOX, 'Enter');
  await becomes(wanted);
  assert.equal(await kind(), 'all', typed);
  await reach(page, '.events-table .row[data-row="0"]');
  assert.equal(await page.inputValue(BOX), '');
}

// A comparison completes itself by keyboard: the field, its sign, its value of those that are there.
await begin('events');
await page.fill(BOX, 'cl');
await option('class').first().waitFor();
await page.press(BOX, 'ArrowDown');
await page.press(BOX, 'Tab');
assert.equal(await page.inputValue(BOX), 'class ');
await option('is').first().waitFor();
await page.press(BOX, 'ArrowDown');
await page.press(BOX, 'Enter');
assert.equal(await page.inputValue(BOX), 'class = ');
await option('sqli').first().waitFor();
assert.equal(await page.getAttribute(BOX, 'aria-expanded'), 'true');
await page.type(BOX, 'sq');
await page.press(BOX, 'ArrowDown');
const active = await page.getAttribute(BOX, 'aria-activedescendant');
assert.match(await page.locator(`[id="${active}"]`).innerText(), /^sqli/);
await page.press(BOX, 'Enter');
assert.equal(await page.inputValue(BOX), 'class = sqli ');
await page.press(BOX, 'Enter');
await becomes('class = sqli');
// A filter stays with the kind of events that is shown.
assert.equal(await kind(), null);

// Chips: turned, removed and edited by mouse; the last one by the keyboard; what a facet adds is one, too.
await reach(page, '.facet .pick');
await page.click('.facet:has(h2:text-is("site")) .not >> nth=0');
await page.waitForFunction(() => document.querySelectorAll('.chip').length === 2);
const site = (await chips())[1].replace('not ', '');
assert.equal(await filter(), `class = sqli and not ${site}`);
await page.click(`.chip:has-text("${site}") button[aria-label^="Only"]`);
await becomes(`class = sqli and ${site}`);
await page.click('.chip:has-text("class = sqli") button[aria-label^="Leave out"]');
await becomes(`not class = sqli and ${site}`);
await page.click(`.chip:has-text("${site}") button[aria-label^="Remove"]`);
await becomes('not class = sqli');
assert.deepEqual(await chips(), ['not class = sqli']);
await page.click('.chip .term');
assert.equal(await page.inputValue(BOX), 'not class = sqli');
await page.press(BOX, 'Enter');
await becomes('not class = sqli');
await page.press(BOX, 'Backspace');
await becomes('');
assert.equal(await page.inputValue(BOX), 'not class = sqli');

// Alternatives are one chip, and keep their parentheses beside others.
await search('class = sqli or class = xss');
await search('site = shop');
await becomes('(class = sqli or class = xss) and site = shop');
assert.equal((await chips()).length, 2);
// A mistake marks its chip.
await search('statsu = 1');
await reach(page, '.chip.bad:has-text("statsu")');
assert.equal(await page.locator('.chip.bad').count(), 1);
assert.match(await page.textContent('#filter-mistake'), /status/);
await page.click('.chips button:has-text("Clear all")');
await becomes('');
await page.waitForFunction(() => document.querySelector('#filter-mistake').hidden);

// The time: up to now, from one moment to another, and any again. A shared URL shows the same.
await page.selectOption('.filter-bar select >> nth=0', '24h');
await becomes('time >= -24h');
await reach(page, '.events-table .row[data-row="0"]');
await page.selectOption('.filter-bar select >> nth=0', 'custom');
await page.fill('dialog input >> nth=0', '2020-01-01T00:00');
await page.fill('dialog input >> nth=1', '2020-01-02T00:00');
await page.click('dialog footer .primary');
await page.waitForFunction(() => /time >= 20(19|20)-\d\d-\d\dT.*and time < 20/.test(decodeURIComponent(location.hash).replaceAll('+', ' ')));
await reach(page, 'main .empty:has-text("No events pass")');
const shared = page.url();
await page.goto('about:blank');
await page.goto(shared);
await reach(page, 'main .empty:has-text("No events pass")');
assert.equal((await chips()).length, 2);
assert.equal(await page.inputValue('.filter-bar select >> nth=0'), 'custom');
await page.selectOption('.filter-bar select >> nth=0', '');
await becomes('');

// The key goes to the box from any page; the overview has one, too. The list of proposals closes before the text goes.
await begin('overview');
await page.fill(BOX, '192.0.2.99');
await page.press(BOX, 'Escape');
assert.equal(await page.getAttribute(BOX, 'aria-expanded'), 'false');
assert.equal(await page.inputValue(BOX), '192.0.2.99');
await page.press(BOX, 'Enter');
await becomes('192.0.2.99');
await reach(page, '.events-table .row[data-row="0"]');
await page.goto(`${base}/#/rules`);
await reach(page, '[data-page=rules] h1');
await page.click('h1');
await page.keyboard.press('/');
await page.waitForFunction((box) => document.activeElement?.matches(box), BOX);
await settled(page);
assert.deepEqual(errors, []);
await browser.close();
console.log('values are recognised, comparisons complete themselves, chips and times are the filter of the URL: passed');
