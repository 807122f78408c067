// What needs the operator: likely false positives, sites and their roll-out, proposals, upstreams and attackers stand on
// the overview with what speaks for them, lead there, and go when they are dealt with; a client is banned for a time, and
// let in again. After scene.mjs and numbers.mjs: node test/tasks.mjs CONSOLE SITE PASSWORD
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { open, reach, settled } from './session.mjs';

const [base, site, password] = process.argv.slice(2);
const { hostname, port } = new URL(site);
const e = encodeURIComponent;
const send = (client, path, host = 'shop.example') => new Promise((done, failed) => {
  const one = request({ hostname, port, path, headers: { Host: host, 'X-Forwarded-For': client, Connection: 'close' } }, (answer) => {
    answer.resume().on('end', () => done({ status: answer.statusCode, id: answer.headers['x-request-id'] }));
  });
  one.on('error', failed);
  one.end();
});

// The same honest text of four clients that do nothing else, and an attacker that the ban of the document spares.
const WORDS = `/tasks/reports?text=${e('1 union select name from customers order by name')}`;
let alarm = null;
for (const last of [11, 12, 13, 14]) alarm = await send(`203.0.113.16${last - 10}`, WORDS);
assert.equal(alarm.status, 403);
const ATTACKER = '192.0.2.66';
for (let at = 0; at < 12; at += 1) await send(ATTACKER, `/tasks/${at}?q=${e("1' or '1'='1")}`);

const { browser, page, errors } = await open(base, 'admin', password);
const begin = async (place) => {
  await page.goto('about:blank');
  await page.goto(`${base}/#/${place}`);
};
/** Waits until the event of a request is stored. */
const stored = async (id) => {
  for (let at = 0; at < 200; at += 1) {
    if (await page.evaluate(async (one) => (await fetch(`/api/v1/events/${one}`)).ok, id)) return;
    await page.waitForTimeout(100);
  }
  throw new Error(`no event of ${id}`);
};
const task = (text) => `#tasks li:has-text("${text}")`;
await begin('overview?range=15m');
await reach(page, task('Likely a false positive: sqli in query:text on /tasks/reports'));
const alike = await page.locator(task('on /tasks/reports')).innerText();
assert.match(alike, /4 requests of 4 clients in 7 days; 4 of these clients triggered nothing else/);
await reach(page, task(`${ATTACKER} keeps attacking`));
assert.match(await page.locator(task(`${ATTACKER} keeps attacking`)).innerText(), /\d+ of its requests were blocked in 15 minutes/);
await reach(page, task('blog only observes'));
await reach(page, task('for fields of shop'));
// The worst first.
const order = await page.locator('#tasks li .badge').allInnerTexts();
const rank = ['Now', 'Soon', 'Idea'];
assert.deepEqual(order, [...order].sort((one, other) => rank.indexOf(one) - rank.indexOf(other)));

// Each leads to what it speaks of: as many events as it says.
await page.click(`${task('on /tasks/reports')} a:has-text("Show the events")`);
await reach(page, '.events-table .row a:has-text("/tasks/reports")');
assert.match(await page.locator('.facets > p.dim').innerText(), /^4 /);
await begin('overview?range=15m');
await reach(page, task('on /tasks/reports'));
await page.click(`${task('on /tasks/reports')} a:has-text("Review")`);
await reach(page, '.reason');
assert.match(await page.textContent('.page-head'), /Not an attack/);

// Dealt with, it is gone: the engine is asked, not a list of what was clicked.
await page.keyboard.press('n');
await reach(page, 'dialog .diff .in');
await page.fill('dialog .field:has-text("Reason") input', 'reports take statements');
await page.click('dialog footer .primary:not([disabled])');
await reach(page, 'dialog .now:has-text("Passed")');
await page.keyboard.press('Escape');
await begin('overview?range=15m');
await reach(page, task(`${ATTACKER} keeps attacking`));
await reach(page, task('blog only observes'));
await settled(page);
assert.equal(await page.locator(task('on /tasks/reports')).count(), 0);

// Whom `except` of the document spares is not said to be banned; the list turns it away.
await page.click(`${task(ATTACKER)} button:has-text("Ban")`);
await page.waitForSelector('dialog select');
await page.click('dialog footer .danger:not([disabled])');
await page.waitForSelector('dialog .failure');
assert.match(await page.locator('dialog .failure').innerText(), /no `ban` of the configuration would refuse this client/);
await page.keyboard.press('Escape');
await page.waitForFunction(() => !document.querySelector('dialog'));

// Put off, it is out of sight and can be shown again.
await page.click(`${task('blog only observes')} button[aria-label^="Hide"]`);
await page.waitForFunction(() => ![...document.querySelectorAll('#tasks li')].some((each) => each.textContent.includes('blog only observes')));
await page.click('#tasks header button');
await reach(page, task('blog only observes'));

// By keyboard and mouse: banned for an hour from its event, refused at once, lifted from the event of the ban.
const CLIENT = '203.0.113.170';
const caught = await send(CLIENT, `/tasks/caught?q=${e("1' or '1'='1")}`);
assert.equal(caught.status, 403);
assert.equal((await send(CLIENT, '/')).status, 200);
await stored(caught.id);
await begin(`event/${caught.id}`);
await reach(page, '.reason');
await page.click('.page-head button:has-text("Ban this client")');
await page.selectOption('dialog select >> nth=1', '1h');
await page.waitForSelector('dialog p:has-text("refused at once")');
// A network, and for ever, are lines of the document: the preview has them.
await page.selectOption('dialog select >> nth=0', 'network');
await reach(page, 'dialog .diff .in:has-text("203.0.113.0/24")');
await page.selectOption('dialog select >> nth=0', 'address');
await page.selectOption('dialog select >> nth=1', '1h');
await page.click('dialog footer .danger:not([disabled])');
await page.waitForFunction(() => !document.querySelector('dialog'));
const refused = await send(CLIENT, '/');
assert.equal(refused.status, 403);
await begin('access');
await reach(page, `tr:has-text("${CLIENT}")`);
await begin('audit');
await reach(page, `tr:has-text("ban.add"):has-text("${CLIENT}"):has-text("3600 s")`);
await stored(refused.id);
await begin(`event/${refused.id}`);
await reach(page, '.reason');
await page.click('.page-head button:has-text("Lift the ban")');
await page.waitForSelector('.page-head button:has-text("Lifted")');
assert.equal((await send(CLIENT, '/')).status, 200);
assert.deepEqual(errors, []);
await browser.close();

// A viewer sees what there is to do, and is offered nothing that would fail.
const viewer = await open(base, 'viewer', password);
await reach(viewer.page, task(`${ATTACKER} keeps attacking`));
assert.equal(await viewer.page.locator('#tasks button:has-text("Ban")').count(), 0);
assert.deepEqual(viewer.errors, []);
await viewer.browser.close();
console.log('tasks lead to what they speak of and go when dealt with; a ban by hand begins and ends: passed');
