// A false alarm from its event to the exclusion and back, by mouse, against a real program:
// node test/flow.mjs CONSOLE SITE NAME PASSWORD
import assert from 'node:assert/strict';
import { launch } from './launch.mjs';

const [base, site, name, password] = process.argv.slice(2);
const union = "x' union select password from users-- ";
const tautology = "1' or '1'='1";
const status = async (path, q) => (await fetch(`${site}${path}?q=${encodeURIComponent(q)}`)).status;

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en' });
const page = await context.newPage();
const errors = [];
page.on('pageerror', (error) => errors.push(error.message));
page.on('console', (message) => { if (/Content Security Policy/i.test(message.text())) errors.push(message.text()); });
page.on('request', (request) => { if (!request.url().startsWith(base) && !/^(data|blob):/.test(request.url())) errors.push(`asks ${request.url()}`); });

// A wrong password is told, the right one lets in.
await page.goto(`${base}/`);
await page.fill('input[autocomplete=username]', name);
await page.fill('input[type=password]', 'not the password');
await page.click('button[type=submit]');
await page.waitForSelector('[role=alert]');
await page.fill('input[type=password]', password);
await page.click('button[type=submit]');
await page.waitForSelector('.frame');

// The attack is blocked, and its event appears by itself.
await page.goto(`${base}/#/events`);
await page.waitForSelector('h1');
assert.equal(await status('/posts/7', union), 403);
await page.waitForSelector('.events-table .row a:has-text("/posts/7")');
await page.click('.events-table .row a:has-text("/posts/7")');
await page.waitForSelector('mark');
assert.match(await page.textContent('.reason'), /SQL injection in query:q/);

// The narrowest exclusion: previewed, applied.
await page.click('button:has-text("Not an attack")');
await page.waitForSelector('dialog .notice:has-text("their clients: 1.")');
await page.waitForSelector('dialog .diff .in');
assert.match(await page.textContent('dialog .diff'), /kind = "sqli\./);
assert.match(await page.textContent('dialog .choice:has(:checked)'), /sqli\..*query:q.*\/posts\/\{id\}/s);
assert.match(await page.textContent('dialog .choice:has(:checked) .cost'), /would have let through: 1 of 1; their clients: 1.*Other attacks: \d+ of [\d,]{5,}/s);
await page.fill('dialog .field:has-text("Reason") input', 'the search takes statements');
await page.waitForSelector('dialog footer .primary:not([disabled])');
await page.click('dialog footer .primary');
await page.waitForSelector('dialog .notice.good');
await page.waitForSelector('dialog .now:has-text("Passed")');
assert.equal(await status('/posts/7', union), 200);
assert.equal(await status('/posts/8', union), 200);
assert.equal(await status('/posts/7/edit', union), 403);
assert.equal(await status('/posts/7', tautology), 403);
await page.keyboard.press('Escape');

// It stands in the list with its reason; the first revision brings the block back.
await page.goto(`${base}/#/exclusions`);
await page.waitForSelector('td:has-text("the search takes statements")');
await page.goto(`${base}/#/revisions?number=1`);
await page.click('dialog footer .primary:has-text("Restore")');
await page.waitForSelector('dialog .diff .out');
await page.waitForSelector('dialog footer .primary:not([disabled]):has-text("Apply")');
await page.click('dialog footer .primary:has-text("Apply")');
await page.waitForFunction(() => !document.querySelector('dialog'));
assert.equal(await status('/posts/7', union), 403);

// On trial first: the request stays blocked, its event and the list tell what would have come of it (it has findings
// that the exclusion does not name, too); then enforced, and taken back.
assert.equal(await status('/trial/1', union), 403);
await page.goto(`${base}/#/events`);
await page.click('.events-table .row a:has-text("/trial/1")');
await page.waitForSelector('.reason');
await page.click('button:has-text("Not an attack")');
await page.waitForSelector('dialog .diff .in');
await page.check('dialog label:has-text("Only try it") input');
await page.waitForSelector('dialog .diff:has-text("trial = true")');
await page.fill('dialog .field:has-text("Reason") input', 'tried first');
await page.waitForSelector('dialog footer .primary:not([disabled])');
await page.click('dialog footer .primary');
await page.waitForSelector('dialog .notice.good');
await page.keyboard.press('Escape');
assert.equal(await status('/trial/2', union), 403);
await page.goto(`${base}/#/exclusions`);
await page.waitForSelector('tr:has-text("tried first") :text("1 of others with something else in them")');
await page.click('tr:has-text("tried first") a:has-text("Show the events")');
await page.waitForSelector('.events-table .row a:has-text("/trial/2")');
await page.goto(`${base}/#/exclusions`);
// One exclusion for each kind; all of them are enforced, and go, as one revision each.
const revision = () => page.evaluate(async () => (await (await fetch('/api/v1/revisions')).json()).items[0].number);
const together = async (button) => {
  const before = await revision();
  await page.waitForSelector('tr:has-text("tried first")');
  const rows = page.locator('tr:has-text("tried first") input[type=checkbox]');
  const count = await rows.count();
  for (let at = 0; at < count; at += 1) await rows.nth(at).check();
  await page.click(`.page-head button:has-text("${button} ${count}")`);
  await page.waitForSelector('dialog .diff .out');
  assert.equal(await page.locator('dialog li code').count(), count);
  await page.click('dialog footer button:nth-of-type(2):not([disabled])');
  await page.waitForFunction(() => !document.querySelector('dialog'));
  assert.equal(await revision(), before + 1);
};
await together('Enforce');
await page.waitForFunction(() => ![...document.querySelectorAll('tr button')].some((each) => each.textContent === 'Enforce'));
assert.equal(await status('/trial/2', union), 200);
await together('Remove');
await page.waitForFunction(() => !document.querySelector('tr input:checked'));
assert.equal(await status('/trial/2', union), 403);

// Try: a curl line is explained; a mistake of the filter has its column; keys go to pages.
await page.goto(`${base}/#/try`);
await page.fill('textarea', `curl '${site}/?q=${encodeURIComponent(tautology)}'`);
await page.click('button[type=submit]');
await page.waitForSelector('.reason');
await page.goto(`${base}/#/events?filter=${encodeURIComponent('statsu = 1')}`);
await page.waitForSelector('#filter-mistake:not([hidden])');
assert.match(await page.textContent('#filter-mistake'), /Column 1.*status/);
await page.click('h1');
await page.keyboard.press('g');
await page.keyboard.press('s');
await page.waitForFunction(() => location.hash.startsWith('#/sites'));

// Chinese, then the end of the session: the login says so.
await page.goto(`${base}/#/account`);
await page.selectOption('[data-page=account] select', 'zh');
await page.waitForSelector('h1:has-text("账户")');
await page.selectOption('[data-page=account] select', 'en');
await context.clearCookies();
await page.goto(`${base}/#/rules`);
await page.waitForSelector('.login');
assert.match(await page.textContent('.login'), /session has ended/);
assert.deepEqual(errors, []);
await browser.close();
console.log('the way from an event to its exclusion and back: passed');
