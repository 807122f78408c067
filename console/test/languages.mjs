// Languages: each is loaded when it is chosen and not before, is remembered, and English stands where one cannot be had.
// node test/languages.mjs CONSOLE NAME PASSWORD
import assert from 'node:assert/strict';
import { open, reach, settled } from './session.mjs';

const [base, name, password] = process.argv.slice(2);
const { browser, page, errors } = await open(base, name, password);
const loaded = [];
page.on('request', (request) => {
  const [, language] = /\/assets\/(de|es|fr|ja|zh)-[^/]*\.js$/.exec(new URL(request.url()).pathname) ?? [];
  if (language) loaded.push(language);
});
const begin = async (place) => {
  await page.goto('about:blank');
  await page.goto(`${base}/#/${place}`);
  await reach(page, '.frame h1');
  await settled(page);
};
const EVENTS = { en: 'Events', de: 'Ereignisse', es: 'Eventos', fr: 'Événements', ja: 'イベント', zh: '事件' };
const choose = async (language) => {
  await page.selectOption('[data-page=account] select', language);
  await page.waitForFunction((text) => [...document.querySelectorAll('.side li a span')].some((each) => each.textContent === text), EVENTS[language]);
};

await begin('account');
assert.deepEqual(loaded, [], 'English loads no other language');
for (const language of ['de', 'es', 'fr', 'ja', 'zh']) {
  loaded.length = 0;
  await choose(language);
  assert.deepEqual(loaded, [language]);
  assert.equal((await page.evaluate(() => document.documentElement.lang)).slice(0, 2), language);
  // Remembered, with numbers and dates of its own.
  await begin('events?kind=all');
  await reach(page, '.events-table .row[data-row="0"]');
  const [day, number] = await page.evaluate((of) => [
    new Intl.DateTimeFormat(of, { month: 'short', day: 'numeric' }).format(new Date()), new Intl.NumberFormat(of).format(1234.5),
  ], language === 'zh' ? 'zh-CN' : language);
  const cell = await page.locator('.events-table .row[data-row="0"] > div:first-child').innerText();
  assert.ok(cell.startsWith(day), `${language}: ${cell} instead of ${day} (${number})`);
  assert.equal(await page.locator('h1').innerText(), EVENTS[language]);
  await begin('account');
}
// One that cannot be loaded: an error that says so, and the page stays as it is.
await choose('en');
await page.route('**/assets/ja-*.js', (route) => route.abort());
await page.reload();
await reach(page, '[data-page=account] select');
await page.selectOption('[data-page=account] select', 'ja');
await page.waitForSelector('[data-page=account] .failure');
assert.equal(await page.evaluate(() => document.documentElement.lang), 'en');
// Nor does a start in it fail.
await page.evaluate(() => localStorage.setItem('portcullis.language', 'ja'));
await begin('overview');
assert.equal(await page.locator('h1').innerText(), 'Overview');
await page.evaluate(() => localStorage.setItem('portcullis.language', 'en'));
// Who reads Swiss French gets French, with its numbers; who reads a language that is not there, English.
for (const [locale, title] of [['fr-CH', "Vue d’ensemble"], ['pt-BR', 'Overview'], ['zh-TW', '概览']]) {
  const other = await (await browser.newContext({ locale })).newPage();
  await other.goto(`${base}/`);
  await other.waitForSelector('input[type=password]');
  assert.equal(await other.evaluate(() => document.documentElement.lang), locale === 'pt-BR' ? 'en' : locale);
  await other.fill('input[autocomplete=username]', name);
  await other.fill('input[type=password]', password);
  await other.click('button[type=submit]');
  await other.waitForSelector(`h1:text-is("${title}")`);
}
assert.deepEqual(errors, []);
await browser.close();
console.log('languages are loaded when they are chosen, and remembered: passed');
