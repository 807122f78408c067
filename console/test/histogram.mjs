// The list of events: the histogram above it counts what the list has, its parts are zoomed and left again, columns are
// chosen and ordered, views are saved on the server. After scene.mjs: node test/histogram.mjs CONSOLE NAME PASSWORD OTHER
import assert from 'node:assert/strict';
import { login, open, reach, settled } from './session.mjs';

const [base, name, password, other] = process.argv.slice(2);
const { browser, page, errors } = await open(base, name, password);
const PLOT = '.over-time .plot';
const query = (key) => page.evaluate((of) => new URLSearchParams(location.hash.split('?')[1]).get(of) ?? '', key);
const total = async () => Number((await page.locator('.facets > p.dim').innerText()).replaceAll(/\D/g, ''));
const begin = async (place) => {
  await page.goto('about:blank');
  await page.goto(`${base}/#/${place}`);
  await reach(page, `${PLOT} canvas`);
  await reach(page, '.facets > p.dim');
  await settled(page);
};
/** Counts of the table, by series. */
const table = async () => {
  if (!await page.locator('.over-time table').count()) await page.click('.over-time summary');
  await reach(page, '.over-time table');
  return page.locator('.over-time table').evaluate((of) => {
    const names = [...of.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
    const rows = [...of.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    return { rows, sums: Object.fromEntries(names.map((each, at) => [each, rows.reduce((sum, row) => sum + Number(row[at + 1].replaceAll(/\D/g, '')), 0)])) };
  });
};
const all = ({ sums }) => Object.values(sums).reduce((sum, each) => sum + each, 0);
/** Pauses what is live, so that two looks count the same. */
const pause = () => page.click('.page-head button:has-text("Live")');

// For every kind of events, and with a filter: as many as the facets count, which are those of the list.
for (const place of ['events', 'events?kind=all', 'events?kind=noted', 'events?kind=access', 'events?kind=all&filter=class+%3D+sqli']) {
  await begin(place);
  const counted = await table();
  assert.equal(all(counted), await total(), `${place}: ${JSON.stringify(counted.sums)}`);
  assert.ok(all(counted) > 0, place);
}
await begin('events?kind=all');
const { sums } = await table();
for (const series of ['Blocked', 'Would be blocked', 'Lists, limits, bans', 'Below threshold']) assert.ok(sums[series] > 0, `no events ${series}`);

// By keyboard a part is chosen: the filter has it, the list, the facets and the histogram are about it, one key leaves it.
await pause();
const before = { filter: await query('filter'), total: await total() };
await page.focus(PLOT);
await page.keyboard.press('Home');
assert.match(await page.getAttribute(PLOT, 'aria-valuetext'), /Blocked \d+/);
// It begins with the oldest event: this part has some.
for (let at = 0; at < 20; at += 1) await page.keyboard.press('Shift+ArrowRight');
await page.keyboard.press('Enter');
await page.waitForFunction(() => /time\+%3E%3D\+20\d\d/.test(location.hash));
assert.match(await query('filter'), /^time >= 20\d\d-\d\d-\d\dT[\d:]+Z and time < 20\d\d-\d\d-\d\dT[\d:]+Z$/);
await settled(page);
await page.waitForTimeout(300);
await settled(page);
assert.equal(all(await table()), await total());
assert.equal(await query('kind'), 'all');
await page.keyboard.press('z');
await page.waitForFunction((wanted) => (new URLSearchParams(location.hash.split('?')[1]).get('filter') ?? '') === wanted, before.filter);
await page.waitForFunction((wanted) => document.querySelector('.facets > p.dim')?.textContent.replaceAll(/\D/g, '') === String(wanted), before.total);

// By mouse, too. A link to the part shows the part; from there the same key widens it.
await settled(page);
const box = await page.locator('.over-time .u-over').boundingBox();
await page.mouse.move(box.x + box.width * 0.01, box.y + 30);
await page.mouse.down();
await page.mouse.move(box.x + box.width * 0.2, box.y + 30, { steps: 5 });
await page.mouse.move(box.x + box.width * 0.4, box.y + 30, { steps: 5 });
await page.mouse.up();
await page.waitForFunction(() => /time\+%3C\+20\d\d/.test(location.hash));
const part = new URL(page.url()).hash;
await begin(part.slice(2));
const shown = await query('filter');
assert.match(shown, /time >= .* and time < /);
await page.keyboard.press('z');
await page.waitForFunction(() => !/time/.test(new URLSearchParams(location.hash.split('?')[1]).get('filter') ?? ''));
// The zone of the times is said.
assert.match(await page.getAttribute('.over-time .chart', 'aria-label'), /\((UTC|GMT|[A-Z]{2,5}|GMT[+-]\d+)\)/);

// Columns: added, removed, moved by keyboard; the URL has them in their order, and a shared one shows the same.
await begin('events?kind=all');
const heads = () => page.locator('.events-table .row.head > div:visible').allInnerTexts();
assert.equal((await heads()).length, 6);
await page.click('.page-head button:has-text("Columns")');
await page.check('dialog label:has-text("Class")');
await page.uncheck('dialog label:has-text("Why")');
assert.equal(await page.locator('dialog label:has-text("Request") >> nth=0').locator('input').isDisabled(), true);
for (let at = 0; at < 5; at += 1) {
  await page.focus('dialog button[aria-label="Move Class to the left"]');
  await page.keyboard.press('Enter');
}
await page.waitForFunction(() => new URLSearchParams(location.hash.split('?')[1]).get('columns') === 'class,time,verdict,request,client,status');
await page.keyboard.press('Escape');
assert.deepEqual((await heads()).map((head) => head.split(' ')[0]), ['Class', 'Time', 'Verdict', 'Request', 'Client', 'Status']);
await reach(page, '.events-table .row[data-row] > div:first-child:has-text("sqli")');
await begin(new URL(page.url()).hash.slice(2));
assert.equal((await heads())[0], 'Class');
// Names that nobody knows are left out, the request stays, a phone has its two columns.
await begin('events?kind=all&columns=nothing,site,site,__proto__');
assert.deepEqual(await heads(), ['Site', 'Request']);
await page.setViewportSize({ width: 390, height: 900 });
await settled(page);
assert.ok(await page.locator('.events-table .row[data-row="0"] a:visible').count() === 1);
assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1));
await page.setViewportSize({ width: 1280, height: 900 });

// Views: saved with filter, kind, columns and time; renamed, replaced, deleted; the same in another browser, nobody else's.
const hostile = '<img src=x onerror="globalThis.pwned=1">\u202e';
const place = 'events?kind=all&filter=class+%3D+sqli+and+time+%3E%3D+-24h&columns=time%2Crequest%2Cclass';
await begin(place);
await page.click('.filter-bar button:has-text("Save view")');
await page.fill('dialog input', 'Injections of a day');
await page.keyboard.press('Enter');
await reach(page, 'dialog .views li:has-text("Injections of a day")');
// The same name again is refused, with its reason.
await page.fill('dialog input', 'Injections of a day');
await page.keyboard.press('Enter');
await page.waitForSelector('dialog .failure:has-text("saved view of this name")');
await page.fill('dialog input', hostile);
await page.keyboard.press('Enter');
await reach(page, 'dialog .views li:has-text("onerror")');
await page.click('dialog button[aria-label="New name of Injections of a day"]');
await page.fill('dialog .views input', 'SQL');
await page.keyboard.press('Enter');
await reach(page, 'dialog .views a:text-is("SQL")');
await page.keyboard.press('Escape');
const second = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en' })).newPage();
await second.goto(`${base}/#/events`);
await login(second, name, password);
await second.waitForSelector('.filter-bar select:has(option:text-is("SQL"))');
await second.selectOption('.filter-bar select:has(option:text-is("SQL"))', { label: 'SQL' });
await second.waitForFunction((wanted) => {
  const [is, want] = [location.hash, wanted].map((text) => Object.fromEntries(new URLSearchParams(text.split('?')[1])));
  return JSON.stringify(Object.entries(is).sort()) === JSON.stringify(Object.entries(want).sort());
}, place);
await second.waitForSelector('.events-table .row.head:has-text("Class")');
assert.equal(await second.locator('.filter-bar select >> nth=1').evaluate((select) => select.selectedOptions[0].textContent), 'SQL');
const third = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en' })).newPage();
await third.goto(`${base}/#/events`);
await login(third, other, password);
await third.waitForSelector('.filter-bar button:has-text("Save view")');
await settled(third);
assert.equal(await third.locator('option:text-is("SQL")').count(), 0);
// Deleted, all of them, by keyboard.
await page.click('.filter-bar button:has-text("Save view")');
await reach(page, 'dialog .views li:has-text("SQL")');
for (let left = 2; left > 0; left -= 1) {
  await page.focus('dialog .views button[aria-label^="Remove"] >> nth=0');
  await page.keyboard.press('Enter');
  await page.waitForFunction((count) => document.querySelectorAll('dialog .views li').length === count, left - 1);
}
await reach(page, 'dialog .empty');
assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
assert.deepEqual(errors, []);
await browser.close();
console.log('the histogram counts what the list has; parts, columns and views: passed');
