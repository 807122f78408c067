// The first start of a program without a document: node test/flags.mjs LOG SITE. The administrator is made by the link of
// the log, whose code leaves the address bar; that nothing can be changed is said once, with the way out.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { launch } from './launch.mjs';
import { reach } from './session.mjs';

const [log, site] = process.argv.slice(2);
let link = null;
while (!link) {
  link = readFileSync(log, 'utf8').match(/http:\S+setup=\S+/)?.[0];
  if (!link) await new Promise((done) => setTimeout(done, 50));
}
const browser = await launch();
const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en' })).newPage();
await page.goto(link);
await page.waitForSelector('h1:has-text("Create the administrator")');
assert.ok(!page.url().includes('setup='), page.url());
await page.fill('input[type=password]', 'a long enough password');
await page.click('button[type=submit]');
await page.waitForSelector('.frame');
const { origin } = new URL(link);
assert.equal((await fetch(`${site}/flags?q=${encodeURIComponent("1' or '1'='1")}`)).status, 403);

await reach(page, '.notice.document:has-text("portcullis init")');
await page.goto(`${origin}/#/events`);
await page.click('.events-table .row a:has-text("/flags")');
await reach(page, '.reason');
// What cannot be is not offered.
const buttons = async () => (await page.locator('main button').allInnerTexts()).join();
assert.ok(!/Not an attack|Put into a list/.test(await buttons()), await buttons());
// A ban by hand needs no document: for a time, as lists are part of one.
await page.click('.page-head button:has-text("Ban this client")');
await page.waitForSelector('dialog select');
assert.deepEqual(await page.locator('dialog option').allInnerTexts(), ['1 hour', '24 hours', '7 days']);
await page.click('dialog footer .danger:not([disabled])');
await page.waitForFunction(() => !document.querySelector('dialog'));
assert.equal((await fetch(`${site}/`)).status, 403);
await page.goto(`${origin}/#/access`);
await page.click('tr:has-text("127.0.0.1"):has-text("by_hand") button:has-text("Lift")');
await reach(page, '.empty:has-text("Nobody is banned")');
assert.equal((await fetch(`${site}/`)).status, 200);
await page.goto(`${origin}/#/sites`);
await page.waitForSelector('main table');
assert.ok(!(await buttons()).includes('Change'), await buttons());
await page.goto(`${origin}/#/revisions`);
await page.waitForSelector('[data-page=revisions] .empty:has-text("there is no document")');
assert.equal(await page.locator('.failure').count(), 0);
// Once it has been read it does not come again.
await page.click('.notice.document button');
await page.waitForSelector('.notice.document', { state: 'detached' });
await page.reload();
await page.waitForSelector('[data-page=revisions] .empty');
assert.equal(await page.locator('.notice.document').count(), 0);
await browser.close();
console.log('a program without a document: passed');
