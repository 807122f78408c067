// The login at an OpenID Connect provider of another site, there and back, by mouse: node test/oidc.mjs CONSOLE NAME ROLE
import assert from 'node:assert/strict';
import { launch } from './launch.mjs';

const [base, name, role] = process.argv.slice(2);
const browser = await launch();
const page = await (await browser.newContext({ locale: 'en' })).newPage();
const errors = [];
page.on('pageerror', (error) => errors.push(error.message));

await page.goto(`${base}/`);
await page.click('a:has-text("Log in with Example")');
await page.fill('input[name=login]', name);
await page.fill('input[name=password]', 'any');
await page.click('button[type=submit]');
// The provider asks whether the client may know who it is.
await page.click('button[type=submit]:has-text("Continue")');
await page.waitForURL(`${base}/**`);
if (role === 'none') {
  await page.waitForSelector('text=none of your groups');
  await page.click('a:has-text("To the login")');
  await page.waitForSelector('a:has-text("Log in with Example")');
} else {
  await page.waitForSelector('.frame');
  const session = await page.evaluate(async () => (await fetch('/api/v1/session')).json());
  assert.deepEqual([session.name, session.role], [name, role]);
  const cookies = await page.context().cookies(base);
  const own = cookies.filter((cookie) => cookie.name.startsWith('__Host-portcullis'));
  assert.deepEqual(own.map((cookie) => [cookie.name, cookie.sameSite]), [['__Host-portcullis', 'Strict']]);
  // It lasts: a link of another page would not carry the cookie, the console's own requests do.
  await page.reload();
  await page.waitForSelector('.frame');
}
assert.deepEqual(errors, []);
await browser.close();
console.log(`oidc: ${name} logged in at the provider: ${role}`);
