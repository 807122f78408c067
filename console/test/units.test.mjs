// Units that need no browser, of the TypeScript sources as esbuild makes them JavaScript.
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';

const folder = mkdtempSync(join(tmpdir(), 'console-'));
async function load(name) {
  const outfile = join(folder, `${name.replace('/', '-')}.mjs`);
  await build({ entryPoints: [`src/${name}.ts`], outfile, bundle: true, format: 'esm', logLevel: 'error' });
  return import(outfile);
}

test('all languages have all texts, with what is put into them', async () => {
  const { en } = await load('i18n/en');
  const plain = (text) => [...new Set([...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))].sort();
  for (const language of ['de', 'es', 'fr', 'ja', 'zh']) {
    const { default: texts } = await load(`i18n/${language}`);
    assert.deepEqual(Object.keys(texts).sort(), Object.keys(en).sort(), language);
    for (const [key, text] of Object.entries(texts)) {
      assert.notEqual(text.trim(), '', `${language} ${key}: "${text}"`);
      assert.deepEqual(plain(text), plain(en[key]), `${language} ${key}`);
      // A choice by a count is by one that the text is given, and whole.
      const counts = [...text.matchAll(/\{(\w+)\|[^|{}]*\|[^|{}]*\}/g)].map(([, name]) => name);
      const given = [...en[key].matchAll(/\{(\w+)/g)].map(([, name]) => name);
      assert.ok(counts.every((name) => given.includes(name)), `${language} ${key}`);
      assert.equal(text.replaceAll(/\{\w+(?:\|[^|{}]*\|[^|{}]*)?\}/g, '').search(/\{\w|\|/), en[key].replaceAll(/\{\w+(?:\|[^|{}]*\|[^|{}]*)?\}/g, '').search(/\{\w|\|/), `${language} ${key}`);
      // What is code stays as it is.
      assert.deepEqual([...text.matchAll(/`[^`]+`/g)].map(String).sort(), [...en[key].matchAll(/`[^`]+`/g)].map(String).sort(), `${language} ${key}`);
    }
    const same = Object.keys(texts).filter((key) => texts[key] === en[key] && /[a-z]{4}/.test(en[key]));
    assert.ok(same.length < Object.keys(en).length / 10, `${language}: ${same.length} texts are English: ${same.slice(0, 20)}`);
  }
});

test('what grew from one period to another', async () => {
  const { earlier, growth } = await load('periods');
  assert.deepEqual(earlier({ from: 3600, to: 7200 }, 0), { from: 0, to: 3600 });
  assert.deepEqual(earlier({ from: 700_000, to: 700_060 }, 7), { from: 95_200, to: 95_260 });
  const facet = (values, others = 0) => ({ values: Object.entries(values).map(([value, count]) => ({ value, count })), others, without: 0 });
  const rows = growth(facet({ sqli: 9, xss: 4, path: 1 }), facet({ xss: 1, ssrf: 30, path: 1 }));
  assert.deepEqual(rows, [
    { value: 'ssrf', now: 0, before: 30, by: -30 }, { value: 'sqli', now: 9, before: 0, by: 9 }, { value: 'xss', now: 4, before: 1, by: 3 },
    { value: 'path', now: 1, before: 1, by: 0 },
  ]);
  // Beyond the values that are known, a count is unknown rather than none.
  assert.equal(growth(facet({ a: 5 }), facet({ b: 7 }, 100)).find(({ value }) => value === 'a').before, null);
  assert.deepEqual(growth(undefined, undefined), []);
});

test('evidence is found however it is written', async () => {
  const { highlight, curl } = await load('highlight');
  const marked = (text, evidence) => highlight(text, [evidence]).filter((piece) => piece.marked).map((piece) => piece.text);
  assert.deepEqual(marked("GET /?q=' or 1=1-- HTTP/1.1", 'or 1=1'), ['or 1=1']);
  assert.deepEqual(marked('GET /?q=%27%20or%201%3d1 HTTP/1.1', "' or 1=1"), ['%27%20or%201%3d1']);
  assert.deepEqual(marked('q=%27+or+1%3D1', "' or 1=1"), ['%27+or+1%3D1']);
  // Signs that need no encoding are encoded by some clients only; twice; of several bytes; in JSON.
  assert.deepEqual(marked("GET /x?q=1%27%20or%20%271%27=%271 HTTP/1.1", "' or '1'='1"), ["%27%20or%20%271%27=%271"]);
  assert.deepEqual(marked('q=%2527%2520or%25201 x', "' or 1"), ['%2527%2520or%25201']);
  assert.deepEqual(marked('q=%C3%A9%F0%9F%98%80+or+1;', 'é😀 or 1'), ['%C3%A9%F0%9F%98%80+or+1']);
  assert.deepEqual(marked('q=%ff%fe%c3 or 1', 'or 1'), ['or 1']);
  assert.deepEqual(marked('{"a":"\\" or 1"}', '" or 1'), ['\\" or 1']);
  assert.deepEqual(marked('nothing here', 'or 1=1'), []);
  for (const text of ['', 'a', '%', '%4', '%zz%', '%F0%9F', '%%%25%32', 'İİİ or 1=1']) assert.equal(highlight(text, ['or 1=1', '']).map((piece) => piece.text).join(''), text);
  assert.equal(curl("POST /a HTTP/1.1\r\nHost: h\r\nX: it's\r\nContent-Length: 1\r\n\r\nx", 'http'),
    "curl --path-as-is -X POST 'http://h/a' \\\n  -H 'X: it'\\''s' \\\n  --data-raw 'x'");
});

test('a session shows its browser, whatever it calls itself', async () => {
  const { browser } = await load('browser');
  const chrome = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36';
  assert.equal(browser(chrome), 'Chrome, Windows');
  assert.equal(browser(`${chrome} Edg/141.0.0.0`), 'Edge, Windows');
  assert.equal(browser('Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'), 'Firefox, Linux');
  assert.equal(browser('Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/141.0.0.0 Mobile Safari/537.36'), 'Chrome, Android');
  assert.equal(browser('curl/8.5.0'), 'curl');
  for (const text of ['', ' ', '<script>', '\u202eevil']) assert.equal(browser(text), null);
  assert.equal(browser('a'.repeat(500)).length, 40);
});

test('what is not seen is written as its code', async () => {
  const { visible } = await load('visible');
  const { readable } = await load('format');
  const { highlight, spanOf } = await load('highlight');
  assert.equal(visible('a\u202eb\u0000\n\u200d\ufeff\ud800'), 'a\\u{202e}b\\u{0}\\u{a}\\u{200d}\\u{feff}\\u{d800}');
  assert.equal(visible('a\r\n\tb\rc\u2066', true), 'a\n\tb\\u{d}c\\u{2066}');
  assert.equal(visible('Größe 价格 שלום 😀'), 'Größe 价格 שלום 😀');
  assert.equal(readable('/%E2%80%AEgpj.exe?a+b'), '/\\u{202e}gpj.exe?a b');
  // Spans are of bytes; half a sign is no evidence, and no reason to fail.
  assert.equal(spanOf('é😀 or 1=1', [7, 13]), 'or 1=1');
  assert.equal(spanOf('😀 or', [2, 7]), ' or');
  assert.equal(highlight('😀', ['\ud83d']).map((piece) => piece.text).join(''), '😀');
});

test('paths with ids become templates, doubtful ones none', async () => {
  const { template, isDoubtful } = await load('path');
  assert.equal(template('/posts/7/edit'), '/posts/{id}/edit');
  assert.equal(template('/u/3f2a9c1e-0b1d-4a57-9c1e-8a7b6c5d4e3f'), '/u/{id}');
  assert.equal(template('/search'), '/search');
  for (const path of ['/a/../b', '//a', '/a;b', '/a%2fb', '/a*', '/{a}', 'a']) assert.ok(isDoubtful(path), path);
  assert.ok(!isDoubtful('/posts/7'));
});

test('filters are put together so that both hold', async () => {
  const { both, quoted } = await load('format');
  assert.equal(both('', 'a = 1'), 'a = 1');
  assert.equal(both('a = 1 or b = 2', 'c = 3'), '(a = 1 or b = 2) and c = 3');
  assert.equal(quoted('a "b" \\'), '"a \\"b\\" \\\\"');
  assert.equal(quoted('192.0.2.1'), '192.0.2.1');
});

test('events become attacks with exact counts', async () => {
  const { attacks, network } = await load('attacks');
  assert.equal(network('192.0.2.77'), '192.0.2.0/24');
  assert.equal(network('2001:db8::7'), '2001:db8:0:0::/64');
  const event = (addr, minutes, count) => ({ count, cursor: `${minutes}`, event: {
    time: new Date(3_600_000 - minutes * 60_000).toISOString(), client: { addr }, request: { target: '/a?x' },
    verdict: { action: 'deny', class: 'sqli' } } });
  const found = attacks([event('192.0.2.1', 0, 1), event('192.0.2.9', 5, 7), event('198.51.100.1', 6, 1), event('192.0.2.1', 30, 1)]);
  assert.deepEqual(found.map((each) => [each.network, each.count]), [['192.0.2.0/24', 8], ['198.51.100.0/24', 1], ['192.0.2.0/24', 1]]);
});

test('statistics of sites add up', async () => {
  const { timeline, labels } = await load('statistics');
  const item = (start, requests, verdict, outcome = []) => ({ start, requests, by: { verdict, outcome } });
  const line = timeline([
    item(0, 5, [{ label: 'deny', count: 2, error: 0 }]), item(60, 1, []), item(600, 9, []),
    item(0, 1, [{ label: 'detect', count: 1, error: 0 }], [{ label: 'would_block', count: 1, error: 0 }]),
  ], 0, 120, 60);
  assert.deepEqual([line.passed, line.detected, line.blocked], [[3, 1], [1, 0], [2, 0]]);
  assert.deepEqual(labels([item(0, 1, [{ label: 'a', count: 1, error: 0 }]), item(0, 1, [{ label: 'a', count: 2, error: 1 }])], 'verdict', 5), [{ label: 'a', count: 3, error: 1 }]);
});

test('what would be blocked is no sum of all that matched, and refused bytes are no gap', async () => {
  const { outcomes, uninspected } = await load('statistics');
  const item = (outcome, reasons = []) => ({ by: { outcome, not_inspected: reasons } });
  const label = (name, count, error = 0) => ({ label: name, count, error });
  const items = [item([label('would_block', 2), label('noted', 9), label('control', 5)]), item([label('blocked', 3), label('refused', 1)])];
  assert.deepEqual(outcomes(items, ['would_block']), { count: 2, bound: false });
  assert.deepEqual(outcomes(items, ['blocked', 'refused']), { count: 4, bound: false });
  // Of what an earlier version counted only a bound is known.
  assert.deepEqual(outcomes([...items, item([label('would_block', 7, 7)])], ['would_block']), { count: 9, bound: true });
  const bytes = uninspected([item([], [label('after_verdict', 900), label('engine_off', 100)]), item([], [label('engine_off', 1)])]);
  assert.deepEqual(bytes, { passed: [label('engine_off', 101)], refused: 900 });
});

test('the example asks a host that a site serves', async () => {
  const { hostOf } = await load('hosts');
  assert.equal(hostOf([{ hosts: ['*'] }, { hosts: ['*.shop.example', 'shop.example'] }]), 'shop.example');
  assert.equal(hostOf([{ hosts: ['*.shop.example'] }]), 'www.shop.example');
  assert.equal(hostOf([{ hosts: ['*'] }]), 'localhost');
  assert.equal(hostOf([]), 'localhost');
});

test('a certificate that ends soon is a warning', async () => {
  const { expiryTone } = await load('format');
  assert.deepEqual([-1, 0, 11 * 86_400, 21 * 86_400 - 1, 21 * 86_400].map(expiryTone), ['bad', 'warn', 'warn', 'warn', '']);
});

test('one is not many, and times say their day and zone', async () => {
  const { t } = await load('i18n/index');
  const { dateTime, since, time, zone } = await load('format');
  assert.equal(t('rules.total', { count: '1' }), '1 rule');
  assert.equal(t('rules.total', { count: '1,001' }), '1,001 rules');
  assert.equal(t('sites.enforced', { blocked: '1', requests: '2' }).includes('1 of 2 requests was blocked'), true);
  // A value of a client is no word for a count.
  assert.equal(t('events.only', { value: '{count|a|b}' }), 'Only {count|a|b}');
  assert.match(time('2026-11-29T10:15:03Z'), /Nov (28|29|30), \d\d:15:03/);
  assert.match(dateTime('2026-11-29T10:15:03Z'), new RegExp(`2026.*:15:03 ${zone().replaceAll(/[+]/g, '\\+')}$`));
  assert.equal(since(1_780_000_000), 'time >= 2026-05-28T20:26:40Z');
});

test('a filter comes apart into parts that hold together, and back', async () => {
  const { added, gap, isNegated, joined, negate, period, terms, within } = await load('query');
  const parts = (filter) => terms(filter).map(({ text }) => text);
  assert.deepEqual(parts(''), []);
  assert.deepEqual(parts('a = 1 and not (b = 2 or c = 3) and "x and y" AND /p'), ['a = 1', 'not (b = 2 or c = 3)', '"x and y"', '/p']);
  // Alternatives, and what does not pair, are one part: nothing of them may be taken away by itself.
  for (const whole of ['a = 1 or b = 2 and c = 3', '(a = 1', 'a = 1)', 'path = "x and y', 'and', 'a = 1 and', "'it", '()) and (']) assert.deepEqual(parts(whole), [whole.trim()]);
  assert.deepEqual(parts('path = and and host = or'), ['path = and', 'host = or']);
  for (const filter of ['a = 1 and not b = 2', '(a = 1 or b = 2) and c = 3', 'path ~ "a \\" and b" and x = 1']) assert.equal(joined(parts(filter)), filter);
  assert.equal(joined(['a = 1 or b = 2', 'c = 3', 'c = 3', ' ']), '(a = 1 or b = 2) and c = 3');
  for (const term of ['a = 1', 'a = 1 or b = 2', 'not a = 1', '192.0.2.7', 'a = 1 and b = 2']) assert.equal(isNegated(negate(negate(term))), isNegated(term), term);
  assert.equal(negate('a = 1 or b = 2'), 'not (a = 1 or b = 2)');
  assert.equal(added('not class = xss and a = 1', 'class = xss'), 'a = 1 and class = xss');
  assert.equal(added('class = xss', 'class = xss'), 'class = xss');
  assert.deepEqual(period('time >= -1h and a = 1'), { from: '-1h', to: '', rest: 'a = 1' });
  assert.equal(within('time >= -1h and a = 1 and time < now', { from: '-7d', to: '' }), 'a = 1 and time >= -7d');
  assert.equal(within('a = 1 or b = 2', { from: '-7d', to: '' }), '(a = 1 or b = 2) and time >= -7d');
  const wants = (text) => { const found = gap(text); return found && [found.wants, found.of, found.part]; };
  assert.deepEqual(wants(''), ['field', '', '']);
  assert.deepEqual(wants('not cl'), ['field', '', 'cl']);
  assert.deepEqual(wants('class '), ['operator', 'class', '']);
  assert.deepEqual(wants('class = x'), ['value', 'class', 'x']);
  assert.deepEqual(wants('site = "my s'), ['value', 'site', 'my s']);
  assert.deepEqual(wants('class in (sqli, x'), ['value', 'class', 'x']);
  assert.deepEqual(wants('a = 1 and client in '), ['value', 'client', '']);
  for (const text of ['class = sqli ', 'no such thing', 'constructor ', '"open']) assert.equal(wants(text), null, text);
});

test('what is pasted is recognised, and reads as the server reads it', async () => {
  const { recognise } = await load('recognise');
  const first = (text, known) => { const [found] = recognise(text, known); return [found.kind, found.term]; };
  assert.deepEqual(first(' 01a2b3c4-0b1d-4a57-9c1e-8a7b6c5d4e3f '), ['id', '01a2b3c4-0b1d-4a57-9c1e-8a7b6c5d4e3f']);
  for (const client of ['192.0.2.7', '192.0.2.0/24', '2001:db8::7', '2001:db8::/32', '::1']) assert.deepEqual(first(client), ['client', client]);
  for (const text of ['192.0.2', '192.0.2.256', '1.2.3.4.5', '192.0.2.0/33', '12:30', 'a word', 'café']) assert.equal(first(text)[0], 'text', text);
  assert.deepEqual(first('/wp-login.php?x=1'), ['path', '/wp-login.php?x=1']);
  assert.deepEqual(first('/a(b)?q=1'), ['path', 'path = "/a(b)"']);
  assert.deepEqual([first('942100'), first('403')].map(([kind]) => kind), ['rule', 'status']);
  assert.deepEqual(first('Shop.example:8443'), ['host', 'host = shop.example']);
  assert.deepEqual(first('https://shop.example:8443/a/b?c=1#d'), ['url', 'host = shop.example and path = /a/b']);
  assert.deepEqual(first('class = sqli and not /health'), ['filter', 'class = sqli and not /health']);
  assert.equal(first('statsu = 1')[0], 'filter');
  // Texts that attack are no filters, whatever signs they have.
  for (const text of ["1' or '1'='1", 'union select a from b where c = 1', '"><script>', 'a" and b', '${jndi:ldap://x}', '\\" or 1=1']) {
    const [kind, term] = first(text);
    assert.equal(kind, 'text', text);
    assert.equal(term.slice(1, -1).replaceAll(/\\(.)/g, '$1'), text);
  }
  const known = [{ field: 'class', value: 'sqli' }, { field: 'site', value: 'my shop' }];
  assert.deepEqual(first('SQLi', known), ['value', 'class = sqli']);
  assert.deepEqual(recognise('shop', known).map(({ term }) => term), ['"shop"', 'site = "my shop"']);
  assert.deepEqual(recognise('  '), []);
});

test('a part of a chart is whole steps, and stays where its URL says', async () => {
  const { stepAt } = await load('statistics');
  const times = [600, 660, 720];
  assert.deepEqual([0, 600, 659, 660, 779, 780, 9999].map((moment) => stepAt(moment, times, 60)), [0, 0, 0, 1, 2, 2, 2]);
  const { windowFrom } = await load('range');
  const of = (text) => windowFrom(new URLSearchParams(text), 1_000_000);
  assert.deepEqual(of('from=600&to=780'), { from: 600, to: 780, step: 'minute', fixed: true });
  assert.equal(of('from=600&to=86400').step, 'hour');
  // What cannot be one is the range up to now.
  for (const text of ['', 'from=1', 'from=9&to=9', 'from=x&to=9', 'from=-5&to=9', 'from=1.5&to=9', 'from=1&to=99999999999', 'from=1e999&to=2']) {
    assert.equal(of(text).fixed, false, text);
  }
});

test('tasks say what they rest on, once, and go when it is gone', async () => {
  const { attackerTasks, certificateTasks, falsePositiveTasks, proposalTasks, siteTasks, sorted, uninspectedTasks, upstreamTasks } = await load('todo');
  const endpoint = (address, state) => ({ address, state, in_flight: 0, weight: 1, last_error: state === 'healthy' ? null : { message: 'refused', seconds_ago: 1 } });
  assert.deepEqual(upstreamTasks([{ name: 'app', endpoints: [endpoint('a', 'healthy'), endpoint('b', 'probing')] }]), []);
  assert.deepEqual(upstreamTasks([{ name: 'app', endpoints: [endpoint('a', 'healthy'), endpoint('b', 'ejected')] }]).map(({ tone, evidence }) => [tone, evidence]), [['warn', 'b: refused']]);
  assert.equal(upstreamTasks([{ name: 'app', endpoints: [endpoint('b', 'open')] }])[0].tone, 'bad');
  const certificate = (not_after) => ({ listener: 'l', source: 'file', file: 'f.pem', names: ['shop.example'], issuer: null, not_after });
  assert.deepEqual(certificateTasks([certificate(null), certificate(100 * 86_400)], 0), []);
  assert.deepEqual(certificateTasks([certificate(5 * 86_400), certificate(86_400 - 1)], 86_400).map(({ tone }) => tone), ['warn', 'bad']);
  const facets = { fields: { client: { values: [{ value: '192.0.2.1', count: 50 }, { value: '192.0.2.2', count: 40 }, { value: '192.0.2.3', count: 9 }] } } };
  assert.deepEqual(attackerTasks(facets, ['192.0.2.2']).map(({ client }) => client), ['192.0.2.1']);
  const group = (only, newest = 'id-1', path = '/notes/{id}') => ({ site: 'shop', objection: 'rule 942100', location: 'ARGS:text', path, requests: 9, clients: 9, clients_with_nothing_else: only, newest });
  assert.deepEqual(falsePositiveTasks([group(2)], new Set()), []);
  assert.deepEqual(falsePositiveTasks([group(3)], new Set(['id-1'])), []);
  const [alarm] = falsePositiveTasks([group(3)], new Set(['id-2']));
  assert.match(decodeURIComponent(alarm.links[1].href).replaceAll('+', ' '), /site = shop and rule = 942100 and path \^= \/notes\/ and time >= -7d/);
  assert.equal(falsePositiveTasks([group(3, null)], new Set())[0].links.length, 1);
  const route = (engine) => ({ inspection: engine && { engine } });
  const week = (would, requests = 100) => [{ site: 's', requests, by: { outcome: [{ label: 'would_block', count: would, error: 0 }] } }];
  const site = (...engines) => [{ name: 's', routes: engines.map(route) }];
  assert.deepEqual(siteTasks(site('blocking'), week(50)), []);
  assert.deepEqual(siteTasks(site(null), week(50)), []);
  assert.deepEqual(siteTasks(site('detection_only'), week(0, 0)), []);
  assert.match(siteTasks(site('blocking', 'detection_only'), week(2))[0].key, / ready$/);
  assert.match(siteTasks(site('detection_only'), week(3))[0].key, / notReady$/);
  const proposal = (state, id) => ({ site: 'shop', id, state, kind: 'sqli.statement', method: 'POST', path: '/r', name: 'q' });
  assert.deepEqual(proposalTasks([proposal('live', 'a'), proposal('trial', 'b')]), []);
  assert.equal(proposalTasks([proposal('proposed', 'a'), proposal('proposed', 'b')]).length, 1);
  const bytes = (reasons) => [{ bytes_inspected: 900, by: { not_inspected: Object.entries(reasons).map(([label, count]) => ({ label, count, error: 0 })) } }];
  assert.deepEqual(uninspectedTasks(bytes({ media_type: 500, after_verdict: 500, over_limit: 5 })), []);
  assert.deepEqual(uninspectedTasks(bytes({ over_limit: 100 })).map(({ key }) => key), ['uninspected over_limit']);
  assert.deepEqual(uninspectedTasks([]), []);
  assert.deepEqual(sorted([{ tone: 'info' }, { tone: 'bad' }, { tone: 'warn' }, { tone: 'bad' }]).map(({ tone }) => tone), ['bad', 'bad', 'warn', 'info']);
});

test('of stopped requests that would pass, those of clients with others that stay stopped look like attacks', async () => {
  const { offers, suspicious } = await load('offers');
  const { offerTasks } = await load('todo');
  const event = (request_id, addr) => ({ event: { request_id, client: { addr } } });
  const lost = (id) => ({ change: 'lost', id });
  const stopped = [event('a', '192.0.2.1'), event('b', '192.0.2.1'), event('c', '192.0.2.2'), event('d', '192.0.2.3')];
  assert.deepEqual([...suspicious([lost('a'), lost('c')], stopped)], ['a']);
  assert.deepEqual([...suspicious([lost('a'), lost('b')], stopped)], []);
  assert.deepEqual([...suspicious([{ change: 'new', id: 'a' }], stopped)], []);
  assert.deepEqual([...suspicious([lost('x')], [])], []);
  const site = { name: 'shop', looks_like: [{ profile: 'grafana', application: 'Grafana', signs: ['title grafana'], exclusions: 3, opens: [] }] };
  const kept = new Map();
  globalThis.localStorage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value) };
  try {
    assert.deepEqual(offerTasks([site, { name: 'blog', looks_like: [] }]).map(({ key }) => key), ['offer shop grafana']);
    for (const odd of ['{', '7', '[null,7]', '{"a":1}']) {
      kept.set('portcullis.profiles', odd);
      assert.equal(offers(site).length, 1);
    }
    const { dismiss, offers: after } = await load('offers');
    dismiss('shop', 'grafana');
    dismiss('shop', 'grafana');
    assert.equal(after(site).length, 0);
    assert.equal(after({ ...site, name: 'blog' }).length, 1);
  } finally {
    delete globalThis.localStorage;
  }
});

test('an exclusion is a sentence, whatever it names', async () => {
  const { sentence } = await load('wording');
  const at = { location: 'query:text', path: '/notes/{id}' };
  assert.equal(sentence([{ kind: 'sqli.union-select', ...at }, { kind: 'sqli.statement', ...at }]), 'Let the parameter text of pages like /notes/… carry: union select, statement');
  assert.equal(sentence([{ class: 'xss', location: 'form:comment' }]), 'Let the form field comment of all pages of the site carry whatever looks like xss');
  assert.equal(sentence([{ rule_id: 942100, target: 'ARGS:q', path: '/search' }, { rule_id: 942190, target: 'ARGS:q', path: '/search' }]),
    'Rules 942100, 942190 no longer look at the parameter q of /search and what is below it');
  assert.equal(sentence([{ rule_id: 1, target: 'REQUEST_URI' }]), 'Rule 1 no longer looks at REQUEST_URI of all pages of the site');
  // Names are those of clients.
  assert.equal(sentence([{ class: 'xss', location: 'query:{name|a|b}:constructor' }]), 'Let the parameter {name|a|b}:constructor of all pages of the site carry whatever looks like xss');
  assert.match(sentence([{ class: 'xss', location: 'constructor' }]), /^Let constructor of/);
});

test('every key of the schema has a control', async () => {
  const { shapeOf, shapeAt, valueAt, labelOf, pointer, parts } = await load('schema');
  const { readFileSync } = await import('node:fs');
  const root = JSON.parse(readFileSync('../docs/config.schema.json', 'utf8'));
  let keys = 0;
  const visit = (shape, place, depth) => {
    assert.ok(['switch', 'choice', 'text', 'number', 'size', 'list', 'map', 'table', 'either'].includes(shape.kind), place);
    // What an unknown shape would fall back to is a text; only texts may be one.
    if (shape.kind === 'choice') assert.ok(shape.options.length > 0 && shape.options.every((each) => each.value), place);
    if (shape.kind === 'either') assert.ok(shape.table.kind === 'table', place);
    assert.ok(depth < 12, place);
    if (shape.kind === 'list' || shape.kind === 'map') visit(shape.of, `${place}/-`, depth + 1);
    if (shape.kind === 'either') visit(shape.table, place, depth + 1);
    for (const member of shape.members ?? []) {
      keys += 1;
      assert.ok(member.description.length > 5, `${place}/${member.key} is not described`);
      assert.ok(labelOf(member.key).length > 1);
      visit(member.shape(), `${place}/${member.key}`, depth + 1);
    }
  };
  visit(shapeOf(root, root), '', 0);
  assert.ok(keys > 400, `${keys} keys`);
  assert.equal(shapeAt(root, '/sites/0/mode').kind, 'choice');
  assert.equal(shapeAt(root, '/sites/0/discovery').kind, 'either');
  assert.equal(shapeAt(root, '/upstreams/a~1b/endpoints/0/weight').kind, 'number');
  assert.equal(shapeAt(root, '/upstreams/app/connect_timeout').kind, 'text');
  assert.equal(shapeAt(root, '/recent_events').kind, 'size');
  assert.equal(shapeAt(root, '/sites/0/nothing'), null);
  assert.equal(shapeAt(root, '/workers/x'), null);
  for (const key of ['a/b', '~', '~1', '']) assert.deepEqual(parts(pointer('/upstreams', key)), ['upstreams', key]);
  assert.equal(valueAt({ a: [{ b: 1 }] }, '/a/0/b'), 1);
  assert.equal(valueAt({}, '/constructor'), undefined);
});

test('the short ways to changes of the document', async () => {
  const { newSite, newLimit, placed } = await load('document');
  const document = {
    listeners: [{ address: '0.0.0.0:80' }, { address: '0.0.0.0:443', tls: { certificates: [{ cert: 'a', key: 'b' }] } }],
    sites: [{ name: 'shop', hosts: ['*'], routes: [{ path: '/login' }, { path: '/api', methods: ['GET'] }], rate_limits: [{ name: 'login', rate: 1 }] }], upstreams: { 'new.example': {} },
  };
  const form = { hosts: 'new.example, *.new.example', servers: '10.0.0.1:80 https://b', health: '/up', observe: true, tls: 'files', listener: '/listeners/1', cert: 'c', key: 'd' };
  const changes = newSite(document, form);
  assert.deepEqual(changes[0], { path: '/upstreams/new.example-2', value: { endpoints: ['http://10.0.0.1:80', 'https://b'], health: { path: '/up' } } });
  assert.deepEqual(changes[1].value, { name: 'new.example-2', hosts: ['new.example', '*.new.example'], upstream: 'new.example-2', engine: 'detection_only' });
  assert.deepEqual(changes[2], { path: '/listeners/1/tls/certificates/-', value: { cert: 'c', key: 'd' } });
  assert.equal(placed(document, changes[2]), '/listeners/1/tls/certificates/1');
  assert.equal(placed({}, { path: '/sites/-' }), '/sites/0');
  assert.equal(newSite(document, { ...form, listener: '' })[2].path, '/listeners/-');
  // What does not say enough is no change.
  for (const part of [{ hosts: ' ' }, { servers: '' }, { cert: '' }, { key: ' ' }]) assert.equal(newSite(document, { ...form, ...part }), null);
  const limit = { site: 'shop', path: '/login', rate: '5', per: '1m', methods: 'POST' };
  // Names of a site are its own once; a route that takes only some requests is not that of the path.
  assert.deepEqual(newLimit(document, limit), [{ path: '/sites/0/routes/0/rate_limits/-', value: { name: 'login-2', rate: 5, per: '1m', methods: ['POST'] } }]);
  assert.equal(newLimit(document, { ...limit, path: '/api' })[0].path, '/sites/0/routes/-');
  assert.equal(newLimit(document, { ...limit, path: '' })[0].path, '/sites/0/rate_limits/-');
  for (const part of [{ site: 'none' }, { rate: '0' }, { rate: '1e9' }, { rate: '' }]) assert.equal(newLimit(document, { ...limit, ...part }), null);
});

test('directives in colours are the same text', async () => {
  const { tokens, ruleProblems } = await load('seclang');
  const rule = '# why\nSecRule ARGS:a|!ARGS:b "@rx \\"x\\" y" \\\n    "id:1,phase:2,deny,msg:\'a b\'"\nSecRuleRemoveById 5 7-9\nSecAction "id:2,pass"\n';
  const of = (kind) => tokens(rule).filter((token) => token.kind === kind).map((token) => token.text);
  assert.deepEqual(of('comment'), ['# why']);
  assert.deepEqual(of('directive'), ['SecRule', 'SecRuleRemoveById', 'SecAction']);
  assert.deepEqual(of('target'), ['ARGS:a|!ARGS:b']);
  assert.deepEqual(of('operator'), ['"@rx \\"x\\" y"']);
  assert.deepEqual(of('action'), ['"id:1,phase:2,deny,msg:\'a b\'"', '"id:2,pass"']);
  assert.deepEqual(of('text'), ['5', '7-9']);
  // All short texts over what matters, and long ones in linear time.
  const signs = ['a', ' ', '\n', '\\', '"', "'", '#', '\r'];
  let short = [''];
  for (let length = 0; length < 5; length += 1) {
    short = short.flatMap((text) => signs.map((sign) => text + sign));
    for (const text of short) assert.equal(tokens(`SecRule${text}`).map((token) => token.text).join(''), `SecRule${text}`);
  }
  const began = performance.now();
  for (const text of ['\\\n', '"', "'\\", ' ', '# ', 'SecRule A "@rx \n']) tokens(text.repeat(200_000 / text.length));
  assert.ok(performance.now() - began < 3000);
  assert.deepEqual(ruleProblems('error: x\n  --> <directives>:12:3: no\n<directives>:2:1: error: unknown'), [{ line: 12, column: 3, message: 'no' }, { line: 2, column: 1, message: 'error: unknown' }]);
});

test('sinks without a name are called as the program calls them', async () => {
  const { sinkName } = await load('document');
  const sinks = [{ kind: 'webhook' }, { kind: 'syslog', name: 'webhook-2' }, { kind: 'webhook' }, { kind: 'otlp', name: 'traces' }];
  assert.deepEqual(sinks.map((_, at) => sinkName(sinks, at)), ['webhook', 'webhook-2', 'webhook-3', 'traces']);
  assert.equal(sinkName(undefined, 0), '');
  assert.equal(sinkName(sinks, 9), '');
});
