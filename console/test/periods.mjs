// Two periods side by side, and a report of one: every number that is a link leads to as many events as it says, changes
// are marks, a role that may not see them sees none, paper has no controls. After numbers.mjs:
// node test/periods.mjs CONSOLE NAME PASSWORD VIEWER
import assert from 'node:assert/strict';
import { login, open, reach, settled } from './session.mjs';

const [base, name, password, viewer] = process.argv.slice(2);
const { browser, page, errors } = await open(base, name, password);
const digits = (text) => Number(text.replaceAll(/\D/g, ''));
const total = async () => digits(await page.locator('.facets > p.dim').innerText());
const begin = async (place, ready) => {
  await page.goto('about:blank');
  await page.goto(`${base}/#/${place}`);
  await reach(page, ready);
  await settled(page);
};
/** Follows all links that say a number. */
const follow = async (what) => {
  const links = await page.locator('main a[data-count]').evaluateAll((all) => all.map((link) => ({ href: link.getAttribute('href'), count: Number(link.dataset.count) })));
  assert.ok(links.length > 5, `${what}: ${links.length} links`);
  for (const { href, count } of links) {
    await begin(href.slice(2), '.facets > p.dim');
    assert.equal(await total(), count, `${what}: ${href}`);
  }
  return links.length;
};

// A period that ends with the last event, and one before it that has events, too.
const times = await page.evaluate(async () => (await (await fetch('/api/v1/events?limit=1000')).json()).items.map((item) => Date.parse(item.event.time) / 1000));
const [first, last] = [Math.min(...times), Math.max(...times)];
const split = Math.max(Math.floor(first / 60) * 60 + 60, Math.floor(last / 60) * 60);
const length = Math.max(split + 60 - Math.floor(last / 60) * 60, split - Math.floor(first / 60) * 60);
const compare = `compare?from=${split}&to=${split + length}&with=`;
await begin(compare, '#grown-class');
const rows = await page.locator('.grown tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
assert.ok(rows.length > 5, `${rows.length} rows`);
for (const [value, now, before, by] of rows) assert.equal(digits(by) * (by.startsWith('+') ? 1 : -1), digits(now) - digits(before), value);
const growth = rows.filter(([, now]) => digits(now) > 0).length;
const followed = await follow('compare');
// A period of one's own, by the calendar; the URL has it, and a range up to now leaves it.
await begin(compare, '#grown-class');
await page.selectOption('.tools select >> nth=1', 'custom');
await page.click('dialog footer .primary');
await page.waitForFunction((from) => new URLSearchParams(location.hash.split('?')[1]).get('from2') === String(from), split - length);
await page.selectOption('.tools select >> nth=1', 'week');
await page.waitForFunction(() => !location.hash.includes('from2=') && location.hash.includes('with=week'));
await reach(page, '#grown-class .empty, #grown-class table');
await page.click('.tools .tabs button:has-text("1 hour")');
await page.waitForFunction(() => !/[?&]from=/.test(location.hash));

// Changes are marks: on the chart, by keyboard, and in a list that leads to them.
await begin('compare?range=1h', '.marks li');
const marks = await page.locator('.marks li').allInnerTexts();
assert.ok(marks.some((text) => /Revision \d+ by user:/.test(text)), marks.join());
await page.focus('.chart .plot');
await page.keyboard.press('Home');
let marked = 0;
for (let at = 0; at < 60; at += 1) {
  if (/Revision \d+/.test(await page.getAttribute('.chart .plot', 'aria-valuetext'))) marked += 1;
  await page.keyboard.press('ArrowRight');
}
assert.ok(marked > 0, 'no step has its marks');
await page.click('.marks a >> nth=0');
await page.waitForFunction(() => location.hash.startsWith('#/revisions'));
// A part of the chart is what the page is about; z leaves it.
await begin('compare?range=1h', '.chart canvas');
await page.focus('.chart .plot');
await page.keyboard.press('End');
await page.keyboard.press('Shift+ArrowLeft');
await page.keyboard.press('Enter');
await page.waitForFunction(() => /[?&]from=\d+/.test(location.hash));
await page.keyboard.press('z');
await page.waitForFunction(() => !/[?&]from=\d+/.test(location.hash));

// The report: what it says, and its links.
await begin(`report?from=${Math.floor(first / 60) * 60}&to=${Math.floor(last / 60) * 60 + 60}`, '.report[data-ready=true]');
const text = await page.locator('.report').innerText();
for (const part of ['What happened', 'Top attackers', '192.0.2.66', 'sqli', 'Likely false positives', 'Changes made by people', 'config.change']) assert.ok(text.includes(part), part);
assert.ok(!/\blogin\b/.test(text), 'logins are no changes');
const inReport = await follow('report');
// On paper there is no frame and nothing to press, and nothing is wider than the page.
await begin('report?range=1h', '.report[data-ready=true]');
await page.evaluate(() => { document.documentElement.dataset.theme = 'dark'; });
await page.emulateMedia({ media: 'print' });
await page.setViewportSize({ width: 700, height: 1000 });
const paper = await page.evaluate(() => ({
  shown: ['.side', '.tools', '.bottom', '.chart details'].filter((part) => [...document.querySelectorAll(part)].some((each) => getComputedStyle(each).display !== 'none')),
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  text: getComputedStyle(document.querySelector('.report dd')).color,
}));
assert.equal(paper.text, 'rgb(22, 28, 38)', 'paper is light, whatever the theme');
assert.deepEqual(paper.shown, []);
assert.ok(paper.wide <= 1, `${paper.wide} wider than the paper`);
await page.emulateMedia({ media: null });
await page.evaluate(() => { document.documentElement.dataset.theme = 'light'; });
await page.setViewportSize({ width: 1280, height: 900 });
await page.evaluate(() => { globalThis.print = () => { globalThis.printed = true; }; });
await page.click('.report button:has-text("Print")');
assert.equal(await page.evaluate(() => globalThis.printed), true);
// The chart of the overview leads to both, with its period.
await begin('overview?range=1h', '.chart canvas');
await page.click('.card header a:has-text("Compare")');
await page.waitForFunction(() => location.hash.startsWith('#/compare?range=1h'));

// Who may not see changes sees none, and no error.
const other = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en' })).newPage();
await other.goto(`${base}/#/report?range=1h`);
await login(other, viewer, password);
await other.goto(`${base}/#/report?range=1h`);
await reach(other, '.report[data-ready=true]');
assert.ok((await other.locator('.report').innerText()).includes('may not see changes'));
await other.goto(`${base}/#/compare?range=1h`);
await reach(other, '#grown-class');
await settled(other);
assert.equal(await other.locator('.marks li, .notice.warn, .failure').count(), 0);
assert.deepEqual(errors, []);
await browser.close();
console.log(`${followed} numbers of two periods (${growth} values grew) and ${inReport} of a report lead to as many events; marks, paper, roles: passed`);
