// Events of clients that attack the console: markup, controls, marks that turn text around, halves of signs, long texts.
// Nothing of it runs, hides, or makes a page wider than its window: node test/hostile.mjs CONSOLE SITE NAME PASSWORD
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { open } from './session.mjs';

const [base, site, name, password] = process.argv.slice(2);
const { hostname, port } = new URL(site);
const tautology = "1' or '1'='1";
const markup = '"><script>globalThis.pwned=1</script><img src=x onerror=globalThis.pwned=1>';
const turned = '\u202egpj.exe\u2066\u200b\u0007';

/** Sends bytes as they are; what is answered does not matter. */
const send = (request) => new Promise((done) => {
  const socket = connect(Number(port), hostname, () => socket.write(Buffer.from(request, 'utf8')));
  socket.setTimeout(5000, () => socket.destroy());
  socket.on('data', () => undefined).on('error', () => undefined).on('close', done);
});
const get = (path, head = '') => send(`GET ${path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n${head}\r\n`);
const e = encodeURIComponent;
const paths = [
  `/hostile/1${e(markup)}?q=${e(markup)}`,
  `/hostile/2${e(turned)}?q=${e(`${turned}${tautology}`)}`,
  `/hostile/3?${e(`${markup}${turned}`)}=${e(tautology)}`,
  `/hostile/4/${'a'.repeat(3000)}?q=${e(tautology)}${'b'.repeat(3000)}&${'c'.repeat(1000)}=${e(tautology)}`,
  `/hostile/5?q=${e('😀😀é')}${e(tautology)}${e('😀')}&p=%ff%fe${e(tautology)}`,
  `/hostile/6?q=${e(`שלום ${tautology} مرحبا`)}`,
];
for (const path of paths) await get(path, `User-Agent: ${markup}${turned.slice(0, 8)}\r\n`);
// Without a header that is no text, too: such a request is refused as a whole.
for (const path of paths) await get(path, `Referer: http://${'r'.repeat(2000)}/\r\n`);
await get(`/hostile/7?q=${e(tautology)}`, `Host: ${markup}\r\n`);
await send(`GET /hostile/8?q=<script>\u202e HTTP/1.1\r\nHost: ${markup}\r\n\r\n`);

const { browser, page, errors } = await open(base, name, password);
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const clean = async (where) => {
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 900 });
    const found = await page.evaluate(() => ({
      pwned: globalThis.pwned,
      texts: [document.body.innerText, ...[...document.querySelectorAll('[title], [aria-label]')].map((each) => `${each.title}${each.ariaLabel ?? ''}`)],
      elements: document.querySelectorAll('main script, main img, main iframe, dialog script, dialog img').length,
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      dialog: document.querySelector('dialog') ? document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth : 0,
    }));
    assert.deepEqual([found.pwned, found.elements], [undefined, 0], where);
    assert.ok(found.wide <= 1 && found.dialog <= 1, `${where} is wider than its window of ${width}: ${found.wide}, ${found.dialog}`);
    for (const text of found.texts) {
      const sign = text.replaceAll(/[\n\t]/g, '').match(UNSEEN);
      assert.equal(sign, null, `${where}: U+${sign?.[0].codePointAt(0)?.toString(16)} in ${JSON.stringify(text.slice(Math.max(0, (sign?.index ?? 0) - 40), (sign?.index ?? 0) + 40))}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
};

const list = `${base}/#/events?kind=all&filter=${e('path ^= "/hostile/" or not refusal = ""')}`;
await page.goto(list);
await page.waitForSelector('.events-table .row a:has-text("/hostile/5")');
await clean('events');
await page.goto(`${list}&view=attacks`);
await page.waitForSelector('.stack .card');
await clean('attacks');
const ids = await page.evaluate(async () => {
  const filter = encodeURIComponent('path ^= "/hostile/"');
  return (await (await fetch(`/api/v1/events?limit=100&filter=${filter}`)).json()).items.map((item) => [item.event.request_id, item.event.request.target]);
});
assert.ok(ids.length >= paths.length, `${ids.length} events`);
// Each was sent twice.
const once = new Map(ids.map(([id, target]) => [target.slice(0, 10), [id, target]]));
for (const [id, target] of once.values()) {
  await page.goto(`${base}/#/event/${e(id)}`);
  await page.waitForSelector('.reason');
  await page.waitForTimeout(150);
  await clean(`the event of ${target.slice(0, 40)}`);
  await page.click('.page-head button:has-text("JSON")');
  await page.waitForSelector('dialog pre');
  await clean('its JSON');
  await page.keyboard.press('Escape');
}
// Fields that were learned, with such names: the list, and each of them.
await page.goto(`${base}/#/interfaces?site=shop&search=hostile`);
await page.waitForSelector('[data-page=interfaces] td a');
await clean('interfaces');
const fields = await page.locator('[data-page=interfaces] td a').evaluateAll((links) => links.map((link) => link.getAttribute('href')));
assert.ok(fields.length >= 4, `${fields.length} fields`);
for (const field of fields) {
  await page.goto(`${base}/${field}`);
  await page.waitForSelector('dialog table');
  await clean(`the field ${field.slice(0, 200)}`);
}
// A link of anybody names a field of eight kilobytes that nobody knows.
await page.goto(`${base}/#/interfaces?site=shop&method=GET&path=/catalogue&place=query&name=${e(`${markup}${turned}`)}${'n'.repeat(8000)}`);
await page.waitForSelector('dialog .failure');
await clean('a field that nobody knows');
// An exclusion of a field with such a name: in the dialog, in the list, in the audit trail.
const [id] = ids.find(([, target]) => target.startsWith('/hostile/3'));
await page.goto(`${base}/#/event/${e(id)}`);
await page.waitForSelector('.reason');
await page.click('.page-head button:has-text("Not an attack")');
await page.waitForSelector('dialog .diff .in');
await clean('the dialog');
await page.check('dialog label:has-text("Only try it") input');
await page.waitForSelector('dialog .diff:has-text("trial = true")');
await page.click('dialog footer .primary:not([disabled])');
await page.waitForSelector('dialog .notice.good');
await clean('what came of it');
await page.goto(`${base}/#/exclusions`);
await page.waitForSelector('tr:has-text("hostile") input[type=checkbox]');
await clean('exclusions');
for (const box of await page.locator('tr:has-text("hostile") input[type=checkbox]').all()) await box.check();
await page.click('.page-head button.danger');
await page.waitForSelector('dialog .diff .out');
await clean('their removal');
await page.click('dialog footer .danger:not([disabled])');
await page.waitForFunction(() => !document.querySelector('dialog'));
await page.goto(`${list}&columns=request,class,host,method,route,upstream,control,why,id`);
await page.waitForSelector('.events-table .row a:has-text("/hostile/5")');
await clean('columns');
for (const [path, ready] of [
  ['audit', 'td'], ['overview', '.bars li'], ['compare?range=1h', '.grown td'], ['report?range=1h', '.report[data-ready=true]'], ['revisions', 'td'],
]) {
  await page.goto(`${base}/#/${path}`);
  await page.waitForSelector(`main ${ready}`);
  await clean(path);
}
assert.deepEqual(errors, []);
await browser.close();
console.log('events of clients that attack the console: passed');
