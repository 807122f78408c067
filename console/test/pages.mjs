// Screenshots of every page, and what axe-core finds on it: node test/pages.mjs URL NAME PASSWORD FOLDER
// WHOLE=1 has them show what is below the window, too; ONLY=form,limit takes just these.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { launch } from './launch.mjs';
import { login, reach, settled } from './session.mjs';

const [base, name, password, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await launch();
const SHAPES = {
  light: [1440, 900, 'light', 'en'], dark: [1440, 900, 'dark', 'fr-FR'], phone: [390, 844, 'light', 'de-DE'], chinese: [1440, 900, 'light', 'zh-CN'],
  spanish: [1024, 768, 'light', 'es-ES'], japanese: [390, 844, 'dark', 'ja-JP'],
};
/** Pages of the shapes that are there for their language. */
const SOME = ['overview', 'events', 'event', 'compare', 'report', 'sites', 'config', 'account'];
const event = async (page) => {
  await reach(page, '.events-table .body .row');
  await page.click('.events-table .body .row a');
  await reach(page, '.reason');
};
const SQLI = `events?filter=${encodeURIComponent('class = sqli')}`;
/** Each page, or state of one: its place, what it shows when it is there, and what leads to that. */
const PAGES = {
  overview: ['overview?range=15m', '.uplot canvas'],
  wall: ['wall?range=15m', 'main.wall .uplot canvas'],
  events: ['events', '.events-table .body .row'],
  columns: ['events?columns=time,class,request,site,host,method,rule,country,duration,id', 'dialog .columns', async (page) => {
    await reach(page, '.events-table .body .row');
    // A phone has no place for the button.
    await page.evaluate(() => document.querySelector('.page-head button.wide-only').click());
  }],
  views: ['events', 'dialog form', (page) => page.click('.filter-bar > .line > .inline button')],
  compare: ['compare?range=15m', '#grown-class table, #grown-class .empty'],
  report: ['report?range=15m', '.report[data-ready=true]'],
  attacks: ['events?view=attacks', 'main .stack .card'],
  nothing: [`events?filter=${encodeURIComponent('path = "/nobody-was-here"')}`, 'main .empty'],
  search: [`events?filter=${encodeURIComponent('not class = xss and site = shop')}`, '[role=option]', async (page) => {
    await reach(page, '.chip.not');
    await page.fill('[data-filter]', '/products');
  }],
  event: [SQLI, '.reason', event],
  exclude: [SQLI, 'dialog .diff .in', async (page) => { await event(page); await page.keyboard.press('n'); }],
  sites: ['sites', 'main table'],
  settings: ['sites', 'dialog select', (page) => page.click('.card header button >> nth=0')],
  interfaces: ['interfaces?site=shop', '[data-page=interfaces] table'],
  field: [`interfaces?site=shop&method=GET&path=/catalogue/7&place=query&name=size`, 'dialog table'],
  unlearned: ['interfaces?site=blog', '[data-page=interfaces] pre'],
  rules: ['rules?site=blog', '[data-page=rules] table'],
  rule: ['rules?site=blog&id=1002', 'dialog'],
  exclusions: ['exclusions', '[data-page=exclusions] table'],
  try: ['try', '.reason', (page) => page.click('button[type=submit]')],
  access: ['access', '[data-page=access] table'],
  config: ['config', '[data-page=config] table'],
  form: ['config?at=/sites/0', 'dialog .field select'],
  upstream: [`config?at=/upstreams/-`, 'dialog textarea, dialog .entries'],
  newsite: ['config?new=site', 'dialog .field'],
  directives: ['config?rules=blog', 'dialog .editor .directive'],
  limit: ['config?new=limit', 'dialog .diff .in'],
  revisions: ['revisions', '[data-page=revisions] table'],
  people: ['people', '[data-page=people] table'],
  audit: ['audit', '[data-page=audit] table'],
  account: ['account', '[data-page=account] .card'],
};
const only = process.env.ONLY?.split(',');
const problems = [];
async function show(shape) {
  const [width, height, colorScheme, locale] = SHAPES[shape];
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, locale, bypassCSP: true });
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`${shape}: ${error.message}`));
  // What a page that is left has asked for is aborted by itself.
  const isLeft = (request) => request.url().includes('/stream') || request.failure()?.errorText === 'net::ERR_ABORTED';
  page.on('requestfailed', (request) => { if (!isLeft(request)) problems.push(`${shape}: ${request.url()} ${request.failure()?.errorText}`); });
  await page.addInitScript(axe);
  const look = async (title) => {
    await settled(page);
    await page.screenshot({ path: `${folder}/${title}-${shape}.png`, fullPage: Boolean(process.env.WHOLE) });
    const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ['violations'] }));
    for (const each of found.violations) {
      problems.push(`${shape} ${title}: ${each.id} (${each.impact}): ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join(' | ')}`);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);
    if (wide) problems.push(`${shape} ${title}: the page is wider than the window`);
  };
  await page.goto(`${base}/`);
  await page.waitForSelector('form');
  await look('login');
  await login(page, name, password);
  for (const [title, [place, ready, lead]] of Object.entries(PAGES).filter(([title]) => only?.includes(title) ?? (!['spanish', 'japanese'].includes(shape) || SOME.includes(title)))) {
    // Another document, so that nothing of the page before is taken for this one.
    await page.goto('about:blank');
    await page.goto(`${base}/#/${place}`);
    await lead?.(page);
    await reach(page, ready);
    await look(title);
  }
  await context.close();
}
// Two at a time: a page waits for its answers more than it works.
for (const some of [['light', 'phone'], ['dark', 'chinese'], ['spanish', 'japanese']]) await Promise.all(some.map(show));
assert.deepEqual(problems, []);
await browser.close();
console.log(`${Object.keys(PAGES).length} pages in ${Object.keys(SHAPES).length} shapes: no violations`);
