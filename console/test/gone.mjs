// The program ends while the console is open, and comes back: node test/gone.mjs CONSOLE SITE NAME PASSWORD PID PROGRAM ARGUMENT...
// Ends the program that it starts.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { open } from './session.mjs';

const [base, site, name, password, pid, program, ...args] = process.argv.slice(2);
const attack = (number) => fetch(`${site}/gone/${number}?q=${encodeURIComponent("1' or '1'='1")}`).then((answer) => answer.status);
assert.equal(await attack(1), 403);
const { browser, page, errors } = await open(base, name, password);
await page.goto(`${base}/#/events`);
await page.waitForSelector('.events-table .row a:has-text("/gone/1")');

process.kill(Number(pid), 'SIGTERM');
await page.waitForSelector('.banner[role=status]', { timeout: 30_000 });
// The page keeps what it shows, and no page turns into a login or an error.
assert.equal(await page.locator('.events-table .row a:has-text("/gone/1")').count(), 1);
await page.goto(`${base}/#/sites`).catch(() => undefined);
await page.waitForSelector('.banner[role=status]');
assert.equal(await page.locator('.login').count(), 0);
await page.goto(`${base}/#/events`).catch(() => undefined);
while (await fetch(`${base}/api/v1/health`).then(() => true, () => false)) await new Promise((done) => setTimeout(done, 100));

const again = spawn(program, args, { stdio: 'ignore' });
try {
  await page.waitForSelector('.banner', { state: 'detached', timeout: 60_000 });
  // The session is the same one: sessions are kept with the data.
  await page.waitForSelector('.frame');
  await page.waitForSelector('.events-table .row a:has-text("/gone/1")', { timeout: 30_000 });
  assert.equal(await attack(2), 403);
  await page.waitForSelector('.events-table .row a:has-text("/gone/2")', { timeout: 30_000 });
  assert.deepEqual(errors, []);
} finally {
  await browser.close();
  again.kill('SIGTERM');
  await new Promise((done) => again.on('exit', done));
}
console.log('the server gone and back: passed');
