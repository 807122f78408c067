// Settings in forms: a site with upstream and certificate and a limit on a login path by their short ways, counted in
// clicks; any other key by its description; what is wrong stands at its field; comments stay; a document that somebody
// else has changed meanwhile is not overwritten; each change is a revision and in the audit trail, and roles are
// respected. All by keyboard where it says so: node test/forms.mjs CONSOLE SITE PASSWORD FOLDER, with the folder of the
// document and of a certificate `site.pem`, `site.key`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { open, reach, settled } from './session.mjs';

const [base, site, password, folder] = process.argv.slice(2);
const { hostname, port } = new URL(site);
const text = () => readFileSync(`${folder}/portcullis.toml`, 'utf8');
const before = text();
const send = (host, path, method = 'GET', client = '203.0.113.200') => new Promise((done, failed) => {
  const one = request({ hostname, port, path, method, headers: { Host: host, 'X-Forwarded-For': client, Connection: 'close', 'Content-Length': 0 } }, (answer) => {
    answer.resume().on('end', () => done(answer.statusCode));
  });
  one.on('error', failed);
  one.end();
});
const { browser, page, errors } = await open(base, 'admin', password);
await page.evaluate(() => {
  globalThis.clicks = 0;
  addEventListener('click', (event) => { if (event.isTrusted) globalThis.clicks += 1; }, true);
});
const clicks = () => page.evaluate(() => { const count = globalThis.clicks; globalThis.clicks = 0; return count; });
const begin = async (place) => {
  await page.goto('about:blank');
  await page.goto(`${base}/#/${place}`);
};
const field = (label) => `dialog .field:has(> label:text-is("${label}"))`;
const apply = 'dialog footer .primary:not([disabled])';
const closed = () => page.waitForFunction(() => !document.querySelector('dialog'));
/** Clicks into a field, as a person does, and types. */
const type = async (label, words) => {
  await page.click(`${field(label)} input`);
  await page.keyboard.type(words);
};
/** The lines that the document has more than the text of before, and those that it lost. */
const difference = (from) => {
  const [old, now] = [from.split('\n'), text().split('\n')];
  return { lost: old.filter((line) => !now.includes(line)), gained: now.filter((line) => !old.includes(line)) };
};

// A new site with upstream and certificate.
await page.click('nav.side a:has-text("Sites")');
await page.click('.page-head a:has-text("Add a site")');
await reach(page, 'dialog[open]');
await page.keyboard.type('forms.example');
const upstream = before.match(/endpoints = \["(http:[^"]+)"\]/)[1];
await type('Upstream servers', upstream);
await page.selectOption(`${field('TLS')} select`, 'files');
await page.selectOption(`${field('Listener')} select`, '');
await type('Certificate chain', `${folder}/missing.pem`);
await type('Private key', `${folder}/site.key`);
// A file that is not there is said at its field, while the form is filled in.
await page.waitForSelector(`${field('Certificate chain')} .error`, { timeout: 30_000 });
await page.fill(`${field('Certificate chain')} input`, `${folder}/site.pem`);
// Port 443 may need rights that this user does not have: the preview does not listen.
await page.waitForSelector('dialog .diff .in:has-text("forms.example")');
assert.match(await page.locator('dialog .diff').innerText(), /\+\[upstreams\."?forms\.example"?\]/);
// A list that is opened and chosen from takes two more, and *Apply* one.
assert.ok((await clicks()) + 2 + 1 <= 8, 'a site with upstream and certificate takes at most 8 clicks');
// Without the certificate: the port of the listener of this test is no 443.
await page.selectOption(`${field('TLS')} select`, 'none');
await page.waitForFunction(() => !document.querySelector('dialog .diff')?.textContent.includes('0.0.0.0:443'));
await page.click(apply);
await closed();
assert.equal(await send('forms.example', '/'), 200);
assert.deepEqual(difference(before).lost, []);
const withSite = text();

// A limit on a login path: five clicks at most, and it counts.
await clicks();
await page.click('nav.side a:has-text("Access control")');
await page.click('main a:has-text("Limit a path")');
await reach(page, 'dialog .diff .in:has-text("/login")');
await page.selectOption(`${field('Site')} select`, 'forms.example');
await reach(page, 'dialog .diff .in:has-text("rate_limits")');
await page.waitForSelector(apply);
await page.click(apply);
await closed();
assert.ok((await clicks()) + 2 <= 5, 'a limit on a login path takes at most 5 clicks');
const answers = [];
for (let at = 0; at < 7; at += 1) answers.push(await send('forms.example', '/login', 'POST', '203.0.113.201'));
assert.deepEqual([answers.slice(0, 5).every((status) => status === 200), answers.at(-1)], [true, 429], answers.join());
assert.equal(await send('forms.example', '/login', 'GET', '203.0.113.201'), 200);
assert.deepEqual(difference(withSite).lost, []);

// By keyboard alone: the block page's file, wrong at first.
await begin('overview');
await reach(page, 'main h1');
await page.keyboard.press('g');
await page.keyboard.press('c');
await reach(page, 'main table');
await page.focus('button[aria-label="Change: Block page"]');
await page.keyboard.press('Enter');
await reach(page, 'dialog [data-place="/block_page/file"]');
assert.match(await page.locator(field('File')).innerText(), /HTML file/);
await page.focus('dialog [data-place="/block_page/file"]');
await page.keyboard.type('nowhere.html');
await page.waitForSelector(`${field('File')} .error`);
assert.equal(await page.locator(apply).count(), 0);
assert.equal(await page.getAttribute('dialog [data-place="/block_page/file"]', 'aria-invalid'), 'true');
await page.keyboard.press('Escape');
await closed();

// Any key of a site, with its description; a wrong value is said where it is, also below what is folded.
const index = Number(await page.evaluate(async () => (await (await fetch('/api/v1/config')).json()).values.sites.findIndex((each) => each.name === 'blog')));
await begin(`config?at=/sites/${index}`);
await reach(page, `dialog [data-place="/sites/${index}/engine"]`);
await page.fill(`dialog [data-place="/sites/${index}/upstream"]`, 'nobody');
await page.waitForSelector(`dialog .field:has([data-place="/sites/${index}/upstream"]) .error`);
await page.fill(`dialog [data-place="/sites/${index}/upstream"]`, 'app');
await page.selectOption(`dialog [data-place="/sites/${index}/level"]`, 'strict');
await page.waitForSelector('dialog .diff .in:has-text("strict")');
// What it would do to requests that are stored.
await page.click('dialog .replay button');
await reach(page, 'dialog .replay [role=status]');
await page.fill('dialog form > .field:has(> label:text-is("Reason")) input', 'the blog is attacked');
const old = text();
await page.click(apply);
await closed();
assert.deepEqual(difference(old), { lost: [], gained: ['level = "strict"'] });
await begin('audit');
await reach(page, `tr:has-text("values of /sites/${index}"):has-text("the blog is attacked")`);

// Somebody else changes the document while a form is open: it is not overwritten.
await begin('config?at=/timeouts');
await reach(page, 'dialog .group summary');
await page.click('dialog .group summary');
await page.fill('dialog [data-place="/timeouts/idle"]', '61s');
await reach(page, 'dialog .diff .in:has-text("61s")');
await page.evaluate(async () => {
  const token = (await (await fetch('/api/v1/session')).json()).csrf_token;
  const headers = { 'Content-Type': 'application/json', 'X-CSRF-Token': token, 'If-Match': '*' };
  const answer = await fetch('/api/v1/config', { method: 'PATCH', headers, body: JSON.stringify({ changes: [{ path: '/timeouts/idle', value: '62s' }] }) });
  if (!answer.ok) throw new Error(await answer.text());
});
await page.click(apply);
await page.waitForSelector('dialog .failure:has-text("changed since")');
assert.match(text(), /idle = "62s"/);
await page.keyboard.press('Escape');
await closed();

// An entry goes with its comment, and nothing else does.
await begin(`config?at=${encodeURIComponent('/upstreams/forms.example')}`);
await reach(page, 'dialog [data-place]');
await page.check('dialog .choice input');
await page.waitForSelector('dialog .failure');
assert.match(await page.locator('dialog .failure').innerText(), /forms\.example/);
await page.keyboard.press('Escape');
await closed();
assert.deepEqual(difference(before).lost, []);
await settled(page);
assert.deepEqual(errors, []);
await browser.close();

// The others see how sites are set, and are offered no form.
for (const role of ['viewer', 'analyst']) {
  const other = await open(base, role, password);
  await other.page.goto(`${base}/#/sites`);
  await reach(other.page, 'main table');
  assert.equal(await other.page.locator('a:has-text("Add a site")').count(), 0);
  await other.page.goto(`${base}/#/config`);
  await reach(other.page, 'main .empty');
  assert.deepEqual(other.errors, []);
  await other.browser.close();
}
console.log('sites, limits and any key by forms, checked at their fields, comments kept: passed');
