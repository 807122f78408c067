// From a blocked request to an exclusion that serves and is proven, by mouse and by keyboard alone: seconds, and what a
// person does for it. node test/pace.mjs CONSOLE SITE NAME PASSWORD
import assert from 'node:assert/strict';
import { open } from './session.mjs';

const [base, site, name, password] = process.argv.slice(2);
const { browser, page, errors } = await open(base, name, password);
const union = encodeURIComponent("x' union select password from users-- ");
const blocked = (path) => fetch(`${site}${path}?q=${union}`).then((answer) => answer.status);
const ready = () => page.waitForSelector('dialog .choice:has(:checked) .badge.good, dialog .choice:has(:checked)');
const mayApply = () => page.waitForSelector('dialog footer .primary:not([disabled])');

/** Runs a way on a path of its own; `act` counts what it is given. */
async function pace(way, path, steps) {
  await page.goto(`${base}/#/overview`);
  await page.waitForSelector('.figures, .empty');
  await page.goto(`${base}/#/events`);
  await page.waitForSelector('.events-table .body .row');
  let acts = 0;
  const act = async (work) => {
    acts += 1;
    await work;
  };
  assert.equal(await blocked(path), 403);
  const begin = performance.now();
  await page.waitForSelector(`.events-table .row[data-row="0"] a:has-text("${path}")`);
  await steps(act);
  // The dialog has shown the cost before; the same request is tried again by the console, and by us.
  await page.waitForSelector('dialog .now:has-text("Passed")');
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  assert.equal(await blocked(path), 200);
  assert.equal((await fetch(`${site}${path}?q=${encodeURIComponent("1' or '1'='1")}`)).status, 403);
  return { way, acts, seconds };
}

const mouse = await pace('clicks', '/pace/mouse/7', async (act) => {
  await act(page.click('.events-table .row[data-row="0"]'));
  await page.waitForSelector('.reason');
  await act(page.click('.page-head button:has-text("Not an attack")'));
  await ready();
  await mayApply();
  await act(page.click('dialog footer .primary'));
});
const keys = await pace('keys', '/pace/keys/7', async (act) => {
  await act(page.keyboard.press('j'));
  await page.waitForFunction(() => document.activeElement?.getAttribute('data-row') === '0');
  await act(page.keyboard.press('Enter'));
  await page.waitForSelector('.reason');
  await act(page.keyboard.press('n'));
  await ready();
  await mayApply();
  await act(page.keyboard.press('Enter'));
});
// A key counts from the moment at which the event is there, whenever the browser draws it.
await page.keyboard.press('Escape');
await page.goto(`${base}/#/events`);
await page.waitForSelector('.events-table .body .row');
await page.evaluate(() => new MutationObserver((_, watch) => {
  if (!document.querySelector('.reason')) return;
  watch.disconnect();
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'n', bubbles: true }));
}).observe(document.body, { childList: true, subtree: true }));
await page.click('.events-table .row a:has-text("/pace/keys/7")');
await page.waitForSelector('dialog .nothing');
// Advice that fails says why, and can be asked for again.
await page.keyboard.press('Escape');
await page.waitForFunction(() => !document.querySelector('dialog'));
const problem = { type: 'urn:portcullis:problem:busy', title: 'Too much to do', status: 503, detail: 'eight requests are being tried' };
await page.route('**/api/v1/advise', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify(problem) }));
await page.keyboard.press('n');
await page.waitForSelector('dialog .failure:has-text("eight requests are being tried")');
await page.unroute('**/api/v1/advise');
await page.click('dialog .failure button:has-text("Try again")');
await page.waitForSelector('dialog .nothing, dialog .choice');
// A key that closes the dialog holds, even when the advice comes before the browser has said that it closed.
await page.keyboard.press('Escape');
await page.waitForFunction(() => !document.querySelector('dialog'));
await page.evaluate(() => {
  const { fetch } = window;
  window.fetch = (...asked) => (String(asked[0]).includes('/advise')
    ? new Promise((answer) => {
      window.advise = () => {
        document.querySelector('dialog').close();
        answer({ ok: false, status: 409, headers: new Headers({ 'content-type': 'application/json' }), json: async () => ({ title: 'none', type: 'x' }), text: async () => '' });
      };
    })
    : fetch(...asked));
});
await page.keyboard.press('n');
await page.waitForFunction(() => window.advise && document.querySelector('dialog'));
await page.evaluate(() => window.advise());
await page.waitForFunction(() => !document.querySelector('dialog'));
for (const { way, acts, seconds } of [mouse, keys]) console.log(`${acts} ${way}, ${seconds} s from the blocked request to the proven exclusion`);
assert.deepEqual([mouse.acts, keys.acts], [3, 4]);
assert.deepEqual(errors, []);
await browser.close();
