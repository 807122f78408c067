// A page of the console in Chromium, logged in; what must never happen is collected in `errors`.
import { launch } from './launch.mjs';

export async function open(base, name, password) {
  const browser = await launch();
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en' })).newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => { if (/Content Security Policy/i.test(message.text())) errors.push(message.text()); });
  page.on('request', (request) => { if (!request.url().startsWith(base) && !/^(data|blob):/.test(request.url())) errors.push(`asks ${request.url()}`); });
  await page.goto(`${base}/`);
  await login(page, name, password);
  return { browser, page, errors };
}

export async function login(page, name, password) {
  await page.fill('input[autocomplete=username]', name);
  await page.fill('input[type=password]', password);
  await page.click('button[type=submit]');
  await page.waitForSelector('.frame');
}

/** Waits for what a step leads to. An error in its place ends the wait, with its words. */
export async function reach(page, selector, timeout = 60_000) {
  const failed = '.failure, dialog .nothing';
  await page.waitForSelector(`${selector}, ${failed}`, { timeout });
  if (await page.locator(selector).count() === 0) {
    throw new Error(`instead of ${selector}: ${(await page.locator(failed).allInnerTexts()).join(' | ')}`);
  }
}

/** Waits until the page shows all that it asked for: no placeholder, nothing that moves. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('h1') && !document.querySelector('.skeleton')
    && document.getAnimations().every((each) => each.playState !== 'running'));
  // A frame for observers of sizes, one for what they change.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}
