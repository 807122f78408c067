// Numbers lead to what they count: bars of the overview to their events, a value that is pasted to what has it, the
// readiness of a site to what would be blocked. After scene.mjs: node test/numbers.mjs CONSOLE SITE NAME PASSWORD
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { open, reach, settled } from './session.mjs';

const [base, site, name, password] = process.argv.slice(2);
const { hostname, port } = new URL(site);
const e = encodeURIComponent;

/** Status and id of the answer to a request of a client. */
const send = (client, path, host = 'shop.example', method = 'GET') => new Promise((done, failed) => {
  const one = request({ hostname, port, path, method, headers: { Host: host, 'X-Forwarded-For': client, Connection: 'close' } }, (answer) => {
    answer.resume().on('end', () => done({ status: answer.statusCode, id: answer.headers['x-request-id'] }));
  });
  one.on('error', failed);
  one.end();
});

// What each part below looks for: a client that is banned for its attacks, rules of a site that only observes, one of
// which decides nothing.
const BANNED = '192.0.2.99';
const attack = `/banned?q=${e("1' or '1'='1")}`;
for (let at = 0; at < 4; at += 1) await send(BANNED, attack);
const banned = await send(BANNED, '/');
assert.equal(banned.status, 403);
await send('203.0.113.150', '/numbers/noted?debug=1', 'blog.example');
await send('203.0.113.151', `/numbers/would?q=${e('<b>x</b>')}`, 'blog.example');
const both = await send('203.0.113.152', `/numbers/both?q=${e("1' union select password from users-- ")}`, 'blog.example');
assert.equal(both.status, 200);

const { browser, page, errors } = await open(base, name, password);
const total = async () => Number((await page.locator('.facets > p.dim').innerText()).replaceAll(/\D/g, ''));
/** The number of events that pass a filter, once they are stored. */
const counted = async (filter, least) => {
  for (;;) {
    const count = await page.evaluate(async (query) => (await (await fetch(`/api/v1/events/facets?filter=${query}&fields=outcome`)).json()).total, e(filter));
    if (count >= least) return count;
    await page.waitForTimeout(50);
  }
};
await counted(`client = ${BANNED}`, 5);
await counted('path ^= "/numbers/"', 3);

// Each number of the overview that is a link has its events behind it, as many as it says.
await page.goto(`${base}/#/overview?range=15m`);
await reach(page, '#top-control .bars a');
await settled(page);
await reach(page, '#top-client .ranking a');
const bars = await page.locator('main a[data-count][href^="#/events"]').evaluateAll((links) => links.map((link) => ({
  field: link.closest('.card[id], .figures').id || 'figures', label: link.textContent, href: link.getAttribute('href'), count: Number(link.dataset.count),
  said: Number((/\d/.test(link.textContent) && link.closest('.figures, #top-busiest') ? link : link.closest('li, tr').querySelector('b')).textContent.replaceAll(/\D/g, '')),
})));
for (const bar of bars) assert.equal(bar.said, bar.count, `${bar.field} ${bar.label} says something else than it counts`);
assert.ok(bars.filter((bar) => bar.field === 'figures').length >= 2, 'no figure leads to its events');
for (const field of ['class', 'client', 'busiest', 'path', 'rule', 'status', 'control']) assert.ok(bars.some((bar) => bar.field === `top-${field}`), `no bar of ${field}`);
for (const control of ['ban:all', 'rate_limit:logins', 'deny_list:networks']) assert.ok(bars.some((bar) => bar.label === control), `no bar of ${control}`);
for (const bar of bars) {
  await page.goto('about:blank');
  await page.goto(`${base}/${bar.href}`);
  await reach(page, '.events-table .row[data-row="0"]');
  await reach(page, '.facets > p.dim');
  assert.equal(await total(), bar.count, `${bar.field} ${bar.label}: ${bar.href}`);
}
// Bars of all requests lead nowhere: most requests make no event.
await page.goto(`${base}/#/overview?range=15m&count=requests`);
await reach(page, '#top-path .bars li');
assert.equal(await page.locator('[id^="top-"] .bars a').count(), 0);
// What was refused was seen by nobody: it is no gap.
assert.match(await page.locator('#top-not-inspected').innerText(), /refused: nobody got them/);
assert.ok(!(await page.locator('#top-not-inspected .bars').allInnerTexts()).join().includes('After the verdict'));

// A value alone, as it is pasted: the id of a request leads to its event, whatever decided about it.
const filter = async (text) => {
  await page.fill('[data-filter]', text);
  await page.press('[data-filter]', 'Enter');
};
await page.goto(`${base}/#/events`);
await reach(page, '.events-table .row');
await filter(banned.id);
await page.waitForFunction((id) => location.hash === `#/event/${id}`, banned.id);
await reach(page, '.reason');
// Of an event of another kind than the list shows, the list says where it is.
await page.goto(`${base}/#/events?filter=${banned.id}`);
await reach(page, '.elsewhere button:has-text("Access decisions")');
await page.click('.elsewhere button:has-text("Access decisions")');
await reach(page, `.events-table a[href="#/event/${banned.id}"]`);
for (const [text, least] of [[BANNED, 5], ['192.0.2.96/28', 5], ['/numbers', 3], ['1001', 1], ['429', 1]]) {
  await page.goto('about:blank');
  await page.goto(`${base}/#/events`);
  await reach(page, '.events-table .row');
  await filter(text);
  await page.waitForFunction((typed) => decodeURIComponent(location.hash).replaceAll('+', ' ').includes(`filter=${typed}`) && location.hash.includes('kind=all'), text);
  await settled(page);
  assert.ok(await total() >= least, `${text}: ${await total()} events`);
  assert.equal(await page.locator('#filter-mistake:not([hidden])').count(), 0, text);
}

// A ban is no false alarm of a detector; what led to it is one click away.
await page.goto(`${base}/#/event/${banned.id}`);
await reach(page, '.reason');
assert.equal(await page.locator('.page-head button:has-text("Not an attack")').count(), 0);
await page.click('a:has-text("before the ban")');
await reach(page, '.events-table .row a:has-text("/banned")');

// What matched below the threshold is no detection, and says so.
await page.goto(`${base}/#/events?filter=${e('path ^= "/numbers/"')}`);
await reach(page, '.events-table .row a:has-text("/numbers/would")');
await reach(page, '.events-table .row a:has-text("/numbers/both")');
await settled(page);
assert.equal(await page.locator('.events-table a:has-text("/numbers/noted")').count(), 0);
await page.click('.tabs button:has-text("Below threshold")');
await reach(page, '.events-table .row:has-text("/numbers/noted"):has-text("Below threshold"):has-text("Rule below the threshold: 1005")');
// The page of an event names all rules, also where the detector decided.
await page.goto(`${base}/#/event/${both.id}`);
await reach(page, '.card:has(h2:text("Rules that matched")) a:has-text("1001")');

// Only what would have been blocked speaks against enforcing, and the dialog repeats it.
const would = await counted('site = blog and outcome = would_block', 2);
await page.goto('about:blank');
await page.goto(`${base}/#/sites`);
const blog = '.card:has(h2:text-is("blog"))';
await reach(page, `${blog} .notice`);
assert.match(await page.locator(`${blog} .notice`).innerText(), new RegExp(`, ${would} would have been blocked`));
await page.click('button[aria-label="Change blog"]');
await page.selectOption('dialog select >> nth=1', 'blocking');
await reach(page, `dialog .notice:has-text("${would} would have been blocked")`);
await page.keyboard.press('Escape');
await page.click(`${blog} .notice a`);
await reach(page, '.facets > p.dim');
assert.equal(await total(), would);

// A client is denied at a site without lists of its own, by the list that counts there.
await page.goto(`${base}/#/event/${both.id}`);
await reach(page, '.reason');
await page.click('.page-head button:has-text("Ban this client")');
await page.selectOption('dialog select >> nth=1', 'ever');
await reach(page, 'dialog .diff .in:has-text("203.0.113.152")');
await page.click('dialog footer .danger:not([disabled])');
await page.waitForFunction(() => !document.querySelector('dialog'));
assert.equal((await send('203.0.113.152', '/', 'blog.example')).status, 403);
assert.equal((await send('203.0.113.152', '/', 'shop.example')).status, 200);
assert.deepEqual(errors, []);
await browser.close();
console.log(`${bars.length} bars lead to as many events as they say; values alone, bans, readiness: passed`);
