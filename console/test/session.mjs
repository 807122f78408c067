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
  await page.fill('input[autocomplete=username]', name);
  await page.fill('input[type=password]', password);
  await page.click('button[type=submit]');
  await page.waitForSelector('.frame');
  return { browser, page, errors };
}
