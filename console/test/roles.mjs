// Pages, actions and refusals of each role: node test/roles.mjs CONSOLE SITE PASSWORD, with users of the names of
// the roles, all with that password.
import assert from 'node:assert/strict';
import { open } from './session.mjs';

const [base, site, password] = process.argv.slice(2);
assert.equal((await fetch(`${site}/roles?q=${encodeURIComponent("1' or '1'='1")}`)).status, 403);
const PAGES = {
  viewer: ['Overview', 'Events', 'Sites', 'Interfaces', 'Rules', 'Exclusions', 'Access control'],
  analyst: ['Overview', 'Events', 'Sites', 'Interfaces', 'Rules', 'Exclusions', 'Try', 'Access control', 'Revisions'],
  admin: ['Overview', 'Events', 'Sites', 'Interfaces', 'Rules', 'Exclusions', 'Try', 'Access control', 'Configuration', 'Revisions', 'Users and tokens', 'Audit trail'],
};
// Buttons and links of the event's page that change something or show the request.
const ACTIONS = ['Not an attack', 'Ban this client', 'Put into a list', 'Open in Try'];
// Requests that a page could send whatever it shows: method, path, and the least role that may.
const CALLS = [
  ['GET', '/events', 'viewer'],
  ['GET', '/fields', 'viewer'],
  ['POST', '/fields/keep-open', 'analyst'],
  ['POST', '/advise', 'analyst'],
  ['POST', '/explain', 'analyst'],
  ['POST', '/exclusions/batch', 'analyst'],
  ['POST', '/bans', 'analyst'],
  ['DELETE', '/bans/192.0.2.1', 'analyst'],
  ['GET', '/advise/groups', 'viewer'],
  ['GET', '/revisions', 'analyst'],
  ['GET', '/config', 'admin'],
  ['PATCH', '/config', 'admin'],
  ['GET', '/config/schema', 'viewer'],
  ['PATCH', '/sites/shop', 'admin'],
  ['GET', '/users', 'admin'],
  ['POST', '/tokens', 'admin'],
  ['GET', '/audit', 'admin'],
];
const ROLES = Object.keys(PAGES);

for (const role of ROLES) {
  const { browser, page, errors } = await open(base, role, password);
  const shown = await page.locator('nav.side ul a').allInnerTexts();
  assert.deepEqual(shown.map((text) => text.trim()), PAGES[role]);
  await page.goto(`${base}/#/events?filter=${encodeURIComponent('path ^= "/roles"')}`);
  await page.click('.events-table .body .row a >> nth=0');
  await page.waitForSelector('.reason');
  const buttons = (await page.locator('.page-head button, .page-head a.button').allInnerTexts()).join('|');
  for (const action of ACTIONS) assert.equal(buttons.includes(action), role !== 'viewer', `${role}: ${action} in ${buttons}`);
  // The head of the request is for those who may read it: the browser's name stands nowhere else.
  if (role === 'viewer') assert.equal(await page.locator('pre.request:text-matches("user-agent", "i")').count(), 0);
  else await page.waitForSelector('pre.request:text-matches("user-agent", "i")');
  // The page of another role says so.
  await page.goto(`${base}/#/people`);
  await page.waitForSelector(role === 'admin' ? 'main table' : 'main .empty:has-text("role")');
  assert.equal(await page.locator('main button').count() > 0, role === 'admin');
  const answers = await page.evaluate(async (calls) => {
    const token = (await (await fetch('/api/v1/session')).json()).csrf_token;
    return Promise.all(calls.map(async ([method, path]) => {
      const headers = { 'Content-Type': 'application/json', 'X-CSRF-Token': token };
      return (await fetch(`/api/v1${path}`, { method, headers, body: method === 'GET' || method === 'DELETE' ? undefined : '{}' })).status;
    }));
  }, CALLS);
  CALLS.forEach(([method, path, needs], at) => {
    const may = ROLES.indexOf(role) >= ROLES.indexOf(needs);
    assert.equal(answers[at] !== 403, may, `${role}: ${method} ${path} answers ${answers[at]}`);
    assert.ok(answers[at] < 500, `${role}: ${method} ${path} answers ${answers[at]}`);
  });
  // Without the token of the session nothing is changed, whatever the role.
  const bare = await page.evaluate(async () => (await fetch('/api/v1/bans/192.0.2.1', { method: 'DELETE' })).status);
  assert.equal(bare, 403);
  assert.deepEqual(errors, []);
  await browser.close();
}
console.log('what each role sees and may do: passed');
