// Screenshots of every page, and what axe-core finds on it: node test/pages.mjs URL NAME PASSWORD FOLDER
// WHOLE=1 has them show what is below the window, too.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { launch } from './launch.mjs';

const [base, name, password, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await launch();
const PAGES = ['overview', 'wall', 'events', 'attacks', 'nothing', 'event', 'exclude', 'sites', 'settings', 'rules', 'rule', 'exclusions', 'try', 'access', 'revisions', 'people', 'audit', 'account'];
const SHAPES = { light: [1440, 900, 'light', 'en'], dark: [1440, 900, 'dark', 'en'], phone: [390, 844, 'light', 'en'], chinese: [1440, 900, 'light', 'zh-CN'] };
/** Pages that are others in a state of their own, or with a dialog. */
const PLACES = {
  overview: 'overview?range=15m', wall: 'wall?range=15m', attacks: 'events?view=attacks', nothing: `events?filter=${encodeURIComponent('path = "/nobody-was-here"')}`,
  settings: 'sites', rule: 'rules?site=blog&id=1002', rules: 'rules?site=blog',
};
let violations = 0;
const problems = [];
for (const [shape, [width, height, colorScheme, locale]] of Object.entries(SHAPES)) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, locale, bypassCSP: true });
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`${shape}: ${error.message}`));
  // What a page that is left has asked for is aborted by itself.
  const isLeft = (request) => request.url().includes('/stream') || request.failure()?.errorText === 'net::ERR_ABORTED';
  page.on('requestfailed', (request) => { if (!isLeft(request)) problems.push(`${shape}: ${request.url()} ${request.failure()?.errorText}`); });
  const look = async (title) => {
    await page.waitForTimeout(900);
    await page.screenshot({ path: `${folder}/${title}-${shape}.png`, fullPage: Boolean(process.env.WHOLE) });
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run());
    for (const each of found.violations) {
      violations += 1;
      console.log(`${shape} ${title}: ${each.id} (${each.impact}): ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join(' | ')}`);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);
    if (wide) problems.push(`${shape} ${title}: the page is wider than the window`);
  };
  await page.goto(`${base}/`);
  await page.waitForSelector('form');
  await look('login');
  await page.fill('input[autocomplete=username]', name);
  await page.fill('input[type=password]', password);
  await page.click('button[type=submit]');
  await page.waitForSelector('.frame');
  for (const title of PAGES) {
    if (title === 'event' || title === 'exclude') {
      await page.goto(`${base}/#/events?filter=${encodeURIComponent('class = sqli')}`);
      await page.waitForSelector('.events-table .body .row');
      await page.click('.events-table .body .row a');
      await page.waitForSelector('.reason');
    } else await page.goto(`${base}/#/${PLACES[title] ?? title}`);
    if (title === 'exclude') {
      await page.keyboard.press('n');
      await page.waitForSelector('dialog .diff .in', { timeout: 60_000 });
    }
    if (title === 'settings') await page.click('.card header button >> nth=0');
    if (title === 'try') await page.click('button[type=submit]');
    await look(title);
  }
  await context.close();
}
await browser.close();
for (const problem of problems) console.log(problem);
console.log(`${violations} violations, ${problems.length} problems`);
process.exit(violations + problems.length > 0 ? 1 : 0);
