// A site that looks like a known application and declares an API: what the console offers and compares, with a program
// and an application of its own: node test/offers.mjs PROGRAM.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, reach, settled } from './session.mjs';

const [program] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'offers-'));
const grafana = '<!DOCTYPE html><html><head><title>Grafana</title></head><body><script>window.grafanaBootData = {};</script></body></html>';
const application = createServer((asked, answer) => {
  asked.resume();
  answer.setHeader('Content-Type', asked.url.startsWith('/api/') ? 'application/json' : 'text/html');
  answer.end(asked.url.startsWith('/api/') ? '{}' : grafana);
});
const free = () => new Promise((done) => {
  const one = createServer().listen(0, '127.0.0.1', () => { const { port } = one.address(); one.close(() => done(port)); });
});
await new Promise((done) => application.listen(0, '127.0.0.1', done));
const [site, console_] = [await free(), await free()];
writeFileSync(join(folder, 'api.yaml'), 'openapi: 3.0.0\npaths:\n  /api/old/{id}:\n    get: { deprecated: true }\n  /api/never:\n    get: {}\n');
writeFileSync(join(folder, 'portcullis.toml'), `[[listeners]]\nname = "http"\naddress = "127.0.0.1:${site}"\n[[sites]]\nname = "graphs"\nhosts = ["*"]
upstream = "app"\nmode = "semantic"\ndiscovery = true\napi = { schema = "api.yaml" }\n[upstreams.app]\nendpoints = ["http://127.0.0.1:${application.address().port}"]\n`);
const password = 'correct horse battery';
const data = join(folder, 'data');
execFileSync('mkdir', [data]);
execFileSync(program, ['user', 'add', 'admin', '--role', 'admin', '--data', data], { input: `${password}\n` });
const run = spawn(program, ['run', '--config', join(folder, 'portcullis.toml'), '--console', `127.0.0.1:${console_}`, '--data', data], { stdio: 'ignore' });
const ask = (path, body) => new Promise((done, failed) => {
  const type = body === undefined ? {} : { 'Content-Type': 'application/json' };
  const one = request({ port: site, host: '127.0.0.1', path, method: body === undefined ? 'GET' : 'POST', headers: { Connection: 'close', ...type } },
    (answer) => answer.resume().on('end', () => done(answer.statusCode)));
  one.on('error', failed);
  one.end(body);
});
try {
  const base = `http://127.0.0.1:${console_}`;
  for (;;) {
    if (await fetch(`${base}/api/v1/health`).then((answer) => answer.ok, () => false) && await ask('/').catch(() => 0) === 200) break;
    await new Promise((done) => setTimeout(done, 50));
  }
  for (const path of ['/api/old/7', '/api/shadow']) assert.equal(await ask(path), 200);
  // What Grafana is made to carry, and an attack by the same client in another place.
  const content = '<a href="/d/abc" onclick="open(this)">all</a><script>setTimeout(function(){ location.reload() }, 60000)</script>';
  const query = JSON.stringify({ dashboard: { uid: 'd1', panels: [{ type: 'text', options: { mode: 'html', content } }] }, overwrite: false });
  assert.equal(await ask('/api/dashboards/db', query), 403);
  assert.equal(await ask(`/?q=${encodeURIComponent("1' union select password from users--")}`), 403);

  const { browser, page, errors } = await open(base, 'admin', password);
  await reach(page, '#tasks li:has-text("graphs looks like Grafana"):has-text("title grafana")');
  // The page shows what is known when it is opened.
  const known = async () => (await (await fetch('/api/v1/interfaces?site=graphs&limit=1000')).json()).items.map((each) => each.path);
  while (!(await page.evaluate(known)).includes('/api/shadow')) await page.waitForTimeout(100);
  await page.goto(`${base}/#/interfaces?site=graphs`);
  const deviations = '#deviations';
  await reach(page, `${deviations} tr:has-text("Shadow"):has-text("GET /api/shadow")`);
  await reach(page, `${deviations} tr:has-text("Zombie"):has-text("GET /api/old/{id}")`);
  await reach(page, `${deviations} tr:has-text("Not seen"):has-text("GET /api/never")`);
  await page.selectOption(`${deviations} select`, 'zombie');
  await page.waitForFunction(() => document.querySelectorAll('#deviations tbody tr').length === 1);
  assert.ok(page.url().includes('deviation=zombie'));

  // The profile, measured before it is taken: one stopped request would pass, and its client has sent an attack.
  await page.goto(`${base}/#/sites`);
  await page.click('button:has-text("Look at its profile")');
  await reach(page, 'dialog h3:has-text("What it opens")');
  await reach(page, 'dialog .notice.warn:has-text("1 would pass; 1 of these looks like an attack")');
  await settled(page);
  await page.click('dialog footer .primary:not([disabled])');
  await page.waitForFunction(() => !document.querySelector('dialog') && !document.body.innerText.includes('This looks like Grafana'));
  assert.ok(readFileSync(join(folder, 'portcullis.toml'), 'utf8').includes('profiles = ["grafana"]'));
  assert.equal(await ask('/api/dashboards/db', query), 200);
  assert.equal(await ask(`/?q=${encodeURIComponent("1' union select password from users--")}`), 403);
  assert.deepEqual(errors, []);
  await browser.close();
} finally {
  run.kill('SIGTERM');
  application.close();
  await new Promise((done) => (run.exitCode === null ? run.once('exit', done) : done()));
  rmSync(folder, { recursive: true, force: true });
}
console.log('offers and deviations: passed');
