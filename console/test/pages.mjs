// Screenshots of every page, and what axe-core finds on it: node test/pages.mjs URL NAME PASSWORD FOLDER
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { launch } from './launch.mjs';

const [base, name, password, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await launch();
const PAGES = ['overview', 'events', 'event', 'sites', 'rules', 'exclusions', 'try', 'access', 'revisions', 'people', 'audit', 'account'];
const SHAPES = { light: [1440, 900, 'light'], dark: [1440, 900, 'dark'], phone: [390, 844, 'light'] };
let violations = 0;
const problems = [];
for (const [shape, [width, height, colorScheme]] of Object.entries(SHAPES)) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, locale: 'en', bypassCSP: true });
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`${shape}: ${error.message}`));
  // What a page that is left has asked for is aborted by itself.
  const isLeft = (request) => request.url().includes('/stream') || request.failure()?.errorText === 'net::ERR_ABORTED';
  page.on('requestfailed', (request) => { if (!isLeft(request)) problems.push(`${shape}: ${request.url()} ${request.failure()?.errorText}`); });
  const look = async (title) => {
    await page.waitForTimeout(900);
    await page.screenshot({ path: `${folder}/${title}-${shape}.png` });
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
    if (title === 'event') {
      await page.goto(`${base}/#/events?filter=${encodeURIComponent('class = sqli')}`);
      await page.waitForSelector('.events-table .body .row');
      await page.click('.events-table .body .row a');
      await page.waitForSelector('.reason');
    } else await page.goto(`${base}/#/${title}`);
    if (title === 'try') await page.click('button[type=submit]');
    await look(title);
  }
  await context.close();
}
await browser.close();
for (const problem of problems) console.log(problem);
console.log(`${violations} violations, ${problems.length} problems`);
process.exit(violations + problems.length > 0 ? 1 : 0);
