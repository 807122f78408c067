// What a site has learned: its fields, what is unusual in them, the way between a finding and its field, and what an
// operator decides: node test/interfaces.mjs CONSOLE SITE PASSWORD, with users of the names of the roles.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { open, reach, settled } from './session.mjs';

const [base, site, password] = process.argv.slice(2);
const { hostname, port } = new URL(site);
const e = encodeURIComponent;
const send = (client, path, more = {}) => new Promise((done, failed) => {
  const one = request({ hostname, port, path, headers: { Host: 'shop.example', 'X-Forwarded-For': client, Connection: 'close', ...more } }, (answer) => {
    answer.resume().on('end', () => done(answer.headers['x-request-id']));
  });
  one.on('error', failed);
  one.end();
});

const { browser, page, errors } = await open(base, 'admin', password);
const FIELD = { site: 'shop', method: 'GET', path: '/catalogue/{number}', place: 'query', name: 'size' };
/** Events of unusual values of the field, once there are so many. */
const unusual = async (least) => {
  const filter = e('class = field and location = "query:size"');
  for (;;) {
    const count = await page.evaluate(async (query) => (await (await fetch(`/api/v1/events/facets?filter=${query}&fields=outcome`)).json()).total, filter);
    if (count >= least) return count;
    await page.waitForTimeout(50);
  }
};

// By keyboard: to the page, to a field, and back.
await page.keyboard.press('g');
await page.keyboard.press('i');
await reach(page, '[data-page=interfaces] tr.endpoint:has-text("GET /catalogue/{number}")');
await page.keyboard.press('/');
await page.keyboard.type('catalogue');
await page.waitForFunction(() => location.hash.includes('search=catalogue'));
await settled(page);
// The path above has the numbers in the address as a field.
assert.equal(await page.locator('[data-page=interfaces] tr.endpoint').count(), 2);
const row = '[data-page=interfaces] tr:has(a:text-is("size"))';
await reach(page, `${row}:has-text("whole numbers only: 120 values of"):has-text("Closed")`);
await reach(page, '[data-page=interfaces] tr:has(a:text-is("colour")):has-text("words only")');
await page.focus(`${row} a`);
await page.keyboard.press('Enter');
await reach(page, 'dialog:has-text("No event has one")');
await page.keyboard.press('Escape');
await page.waitForFunction(() => !document.querySelector('dialog') && location.hash.includes('search=catalogue') && !location.hash.includes('name='));

// A field that has opened again is pointed out, and says what it was.
await page.goto(`${base}/#/interfaces?site=shop`);
await page.click('.notice.warn:has-text("opened again") a');
await page.click('[data-page=interfaces] tr:has-text("Opened again") a:text-is("drifted")');
await reach(page, 'dialog:has-text("It was closed (whole numbers only) until 20")');
await page.keyboard.press('Escape');

// An endpoint without fields is there when it has been asked, and what was discovered of one with fields, with these.
await send('203.0.113.60', '/catalogue/1?size=1', { Authorization: 'Bearer x' });
await send('203.0.113.60', '/plain/page');
const known = async () => (await (await fetch('/api/v1/interfaces?site=shop&limit=1000')).json()).items.map((each) => each.path);
while (!(await page.evaluate(known)).includes('/plain/page')) await page.waitForTimeout(100);
await page.goto('about:blank');
await page.goto(`${base}/#/interfaces?site=shop`);
await reach(page, '[data-page=interfaces] tr.endpoint:has-text("GET /plain/page"):has-text("1 request of 1 network in 1 day")');
await reach(page, '[data-page=interfaces] tr.endpoint:has-text("GET /catalogue/{number}"):has-text("bearer tokens")');

// Work that the detector takes for statements: put on trial, accepted, dismissed.
const proposal = '#proposals tr:has-text("sqli.statement")';
await reach(page, `${proposal}:has-text("columns"):has-text("POST /reports"):has-text("Proposed")`);
for (const [button, state] of [['Put on trial', 'On trial'], ['Accept', 'Counts for nothing'], ['Dismiss', 'Dismissed']]) {
  await page.click(`${proposal} button:has-text("${button}")`);
  await page.fill('dialog input', 'reports are statements');
  await page.click('dialog button[type=submit]');
  await reach(page, `${proposal} .badge:has-text("${state}")`);
}

// Teaching by hand: whose work it is, what it has shown, and that it counts once it is accepted. Others teach nothing there.
const teaching = '#teaching';
const session = async () => (await (await fetch('/api/v1/fields/sessions')).json()).items[0] ?? { requests: 0 };
await page.click(`${teaching} button:has-text("Teach by hand")`);
assert.equal(await page.inputValue('dialog input >> nth=0'), '127.0.0.1', 'as the console sees the browser');
await page.fill('dialog input >> nth=0', '203.0.113.70');
await page.click('dialog button[type=submit]');
await reach(page, `${teaching}:has-text("203.0.113.70/32 teaches until"):has-text("user:admin")`);
await send('203.0.113.71', '/taught/page?other=seven');
await send('203.0.113.70', '/taught/page?word=seven');
while ((await page.evaluate(session)).requests < 1) await page.waitForTimeout(100);
await reach(page, `${teaching} tr:has-text("query:word"):has-text("GET /taught/page"):has-text("1 value: words"):has-text("Known, open")`);
// Header fields by which proxies name the client are not the application's.
assert.equal(await page.locator(`${teaching} tbody tr`).count(), 1);
for (const [button, after] of [['Stop', 'p[role=status]:has-text("waits for a decision")'], ['Accept what was learned', 'p:has-text("For some minutes")']]) {
  await page.click(`${teaching} button:has-text("${button}")`);
  await page.fill('dialog input', 'the new editor');
  await page.click('dialog button[type=submit]');
  await reach(page, `${teaching} ${after}`);
}
await reach(page, '[data-page=interfaces] tr:has(a:text-is("word"))');

// A text, and a word, in place of a number: each is an event, which leads to the field, and the field to both.
const id = await send('203.0.113.61', `/catalogue/8?size=${e('4;7')}`);
await send('203.0.113.62', '/catalogue/9?SIZE=seven');
await send('203.0.113.62', '/elsewhere?size=seven');
await unusual(2);
await page.goto(`${base}/#/event/${e(id)}`);
await reach(page, '.finding:has-text("field.unusual-syntax"):has-text("whole numbers only")');
await page.click('.finding a:has-text("What is known of the field")');
await reach(page, `dialog:has-text("whole numbers only") table a[href="#/event/${id}"]`);
await page.click('dialog a:has-text("All of them")');
await reach(page, '.events-table .row a:has-text("/catalogue/8")');
await settled(page);
assert.equal(await page.locator('.events-table .body .row').count(), 2);
// Try explains the same, and leads there, too.
await page.goto(`${base}/#/try`);
// The example stands there once the sites are known.
await page.waitForFunction(() => document.querySelector('textarea')?.value.includes('Host:'));
await page.fill('textarea', 'GET /catalogue/3?size=4;7 HTTP/1.1\nHost: shop.example\n');
await page.click('button[type=submit]');
await page.click('.finding a:has-text("What is known of the field")');
await reach(page, 'dialog:has-text("/catalogue/{number}")');

// What an operator decides holds: nothing is unusual in a field that is kept open.
const decide = async (name) => {
  await page.click(`dialog footer button:has-text("${name}")`);
  await page.fill('dialog form input', 'it may carry anything');
  await page.click(`dialog form button[type=submit]:has-text("${name}")`);
};
await decide('Keep open');
await reach(page, 'dialog .badge:has-text("Kept open")');
const kept = await send('203.0.113.63', `/catalogue/8?size=${e('4,8')}`);
await decide('Learn as others');
await reach(page, 'dialog .badge:has-text("Learning")');
await page.keyboard.press('Escape');
await page.goto(`${base}/#/audit`);
for (const action of ['proposal.trial', 'proposal.accept', 'proposal.dismiss']) await reach(page, `tr:has-text("field.${action}"):has-text("sqli.statement in POST /reports form:columns")`);
for (const action of ['start', 'stop', 'accept']) await reach(page, `tr:has-text("field.session.${action}"):has-text("site shop")`);
for (const action of ['keep-open', 'learn']) await reach(page, `tr:has-text("field.${action}"):has-text("it may carry anything")`);
assert.equal(await page.evaluate(async (one) => (await fetch(`/api/v1/events/${one}`)).status, kept), 404);
await page.goto(`${base}/#/interfaces?${new URLSearchParams({ ...FIELD, name: 'colour' })}`);
await reach(page, 'dialog .badge:has-text("Closed")');
await decide('Forget');
await page.waitForFunction(() => !document.querySelector('dialog')
  && ![...document.querySelectorAll('[data-page=interfaces] td a')].some((link) => link.textContent === 'colour'));

// What the site itself has put into a cookie counts for nothing, and the event says why.
await send('203.0.113.65', '/flash');
const flashed = await send('203.0.113.65', `/catalogue/8?q=${e("1' or '1'='1")}`, { Cookie: "flash=1'+or+'1'='1" });
while (!await page.evaluate(async (one) => (await fetch(`/api/v1/events/${one}`)).ok, flashed)) await page.waitForTimeout(50);
await page.goto(`${base}/#/event/${flashed}`);
await reach(page, '.finding:has-text("cookie:flash"):has-text("No points, by the exception"):has-text("issued-cookie")');

// A site that does not learn says how; a list that fails says so, and can be asked again.
await page.goto(`${base}/#/interfaces?site=blog`);
await reach(page, '[data-page=interfaces] pre:has-text("fields = {")');
let fails = true;
await page.route('**/api/v1/fields?**', (route) => (fails ? route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"type":"urn:portcullis:problem:busy","title":"Too many requests at a time","status":503}' }) : route.continue()));
await page.goto(`${base}/#/interfaces?site=shop`);
await page.waitForSelector('.failure:has-text("Too many requests")');
fails = false;
await page.click('.failure button');
await page.waitForSelector('[data-page=interfaces] tr.endpoint');
assert.deepEqual(errors, []);
await browser.close();

// Others see the same; an analyst may keep a field open, and no more.
for (const [role, expected] of [['viewer', []], ['analyst', ['Keep open']]]) {
  const other = await open(base, role, password);
  await other.page.goto(`${base}/#/interfaces?${new URLSearchParams(FIELD)}`);
  await reach(other.page, 'dialog table');
  assert.deepEqual(await other.page.locator('dialog footer button').allInnerTexts(), expected, role);
  await other.browser.close();
}
console.log('what was learned of fields: passed');
