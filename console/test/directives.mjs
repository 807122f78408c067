// Own rules of a site: in colours, the compiler's word at the line, tried on stored requests before they serve; all by
// keyboard: node test/directives.mjs CONSOLE SITE PASSWORD
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { open, reach, settled } from './session.mjs';

const [base, site, password] = process.argv.slice(2);
const { hostname, port } = new URL(site);
const send = (path) => new Promise((done, failed) => {
  const one = request({ hostname, port, path, headers: { Host: 'blog.example', 'X-Forwarded-For': '203.0.113.210', Connection: 'close' } }, (answer) => {
    answer.resume().on('end', () => done(answer.headers['x-request-id']));
  });
  one.on('error', failed);
  one.end();
});
// A request that matches a rule is stored, by which new rules can be tried.
await send('/?debug=1');
const { browser, page, errors } = await open(base, 'admin', password);
await page.goto(`${base}/#/rules?site=blog`);
await reach(page, 'main table');
await page.focus('.page-head a:has-text("Edit own rules")');
await page.keyboard.press('Enter');
await reach(page, 'dialog .editor textarea');
const area = 'dialog .editor textarea';
const before = await page.inputValue(area);
assert.match(before, /SecRuleRemoveById 1004/);
// What is shown in colours is the text.
assert.equal((await page.textContent('dialog .editor pre')).replace(/\n$/, ''), before);
for (const kind of ['directive', 'target', 'operator', 'action']) assert.ok(await page.locator(`dialog .editor .${kind}`).count() > 0, kind);

// A mistake in the last line: the line, the compiler's word, and nothing to apply.
await page.focus(area);
await page.keyboard.press('Control+End');
await page.keyboard.insertText('SecRule ARGZ "@rx ^secret$" "id:1100,phase:2,deny"\n');
const line = before.split('\n').length;
await page.waitForSelector('dialog .problems li');
const said = await page.locator('dialog .problems').innerText();
assert.match(said, new RegExp(`Line ${line}[^]*ARGZ`));
assert.equal(await page.locator('dialog .editor .wrong').count(), 1);
assert.match(await page.textContent('dialog .editor .wrong'), /ARGZ/);
assert.equal(await page.locator('dialog footer .primary:not([disabled])').count(), 0);
// Its button leads there.
await page.click('dialog .problems button >> nth=0');
const at = await page.evaluate(() => document.querySelector('dialog textarea').selectionStart);
assert.ok(at >= before.length && at <= before.length + 20, `${at} of ${before.length}`);

// Mended, it is tried on what is stored, and then applied.
await page.fill(area, `${before}SecRule ARGS_NAMES "@streq debug" "id:1100,phase:2,deny,status:403"\n`);
await page.waitForSelector('dialog .diff .in:has-text("1100")');
assert.equal(await page.locator('dialog .problems').count(), 0);
await page.click('dialog .replay button');
await reach(page, 'dialog .replay [role=status]');
assert.match(await page.locator('dialog .replay [role=status]').innerText(), /Of \d+ stored requests?/);
await page.click('dialog footer .primary:not([disabled])');
await page.waitForFunction(() => !document.querySelector('dialog'));
await page.goto(`${base}/#/rules?site=blog&search=1100`);
await reach(page, 'main tr:has-text("1100")');
// And back: the text is what it was.
await page.goto(`${base}/#/config?rules=blog`);
await reach(page, area);
await page.fill(area, before);
await page.waitForSelector('dialog .diff .out:has-text("1100")');
assert.equal(await page.locator('dialog .diff .in').count(), 0);
await page.click('dialog footer .primary:not([disabled])');
await page.waitForFunction(() => !document.querySelector('dialog'));
await settled(page);
assert.deepEqual(errors, []);
await browser.close();
console.log('own rules: in colours, mistakes at their lines, tried before they serve: passed');
