// The first start of a program with flags: node test/flags.mjs LOG SITE. The administrator is made by the link of the log,
// whose code leaves the address bar; an exclusion is kept in the document that the start has made.
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

// The settings are kept in the data folder, so that they can be changed.
assert.equal(await page.locator('.notice.document').count(), 0);
await page.goto(`${origin}/#/events`);
await page.click('.events-table .row a:has-text("/flags")');
await reach(page, '.reason');
await page.click('.page-head button:has-text("Not an attack")');
await page.waitForSelector('dialog .choice:has(:checked)');
await page.waitForSelector('dialog footer .primary:not([disabled])');
await page.click('dialog footer .primary');
await page.waitForSelector('dialog .now:has-text("Passed")');
assert.equal((await fetch(`${site}/flags?q=${encodeURIComponent("1' or '1'='1")}`)).status, 200);
await page.keyboard.press('Escape');
await page.goto(`${origin}/#/events`);
await page.click('.events-table .row a:has-text("/flags")');
await reach(page, '.reason');
// A ban by hand.
await page.click('.page-head button:has-text("Ban this client")');
await page.waitForSelector('dialog select');
await page.click('dialog footer .danger:not([disabled])');
await page.waitForFunction(() => !document.querySelector('dialog'));
assert.equal((await fetch(`${site}/`)).status, 403);
await page.goto(`${origin}/#/access`);
await page.click('tr:has-text("127.0.0.1"):has-text("by_hand") button:has-text("Lift")');
await reach(page, '.empty:has-text("Nobody is banned")');
assert.equal((await fetch(`${site}/`)).status, 200);
await page.goto(`${origin}/#/revisions`);
await page.waitForSelector('[data-page=revisions] table');
assert.equal(await page.locator('.failure').count(), 0);
await browser.close();
console.log('a program with flags: passed');
