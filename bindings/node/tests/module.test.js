'use strict'

const assert = require('node:assert')
const { test } = require('node:test')
const { Waf, middleware, fastify } = require('..')

const HEAD = {
  method: 'GET',
  target: '/',
  version: '1.1',
  fields: ['host', 'a'],
  client: '127.0.0.1',
  port: 1,
  tls: false,
  mayHaveBody: false
}

test('mistakes say what to do', () => {
  assert.throws(() => new Waf({ mode: 'semantik' }), /semantic, crs or both/)
  assert.throws(() => new Waf({ mode: 'both' }), /needs rules/)
  assert.throws(() => new Waf({ document: '/nonexistent/a.toml' }), /no such file/)
  assert.throws(() => new Waf({ directives: 'SecRule ARGS "@rx (" "id:1"' }), /:1:/)
  assert.throws(() => new Waf({ requestBodyLimitt: 1 }), /no setting `requestBodyLimitt`/)
  for (const paranoia of [-1, 1.5, 257, NaN, Infinity]) assert.throws(() => new Waf({ paranoia }), /paranoia: /)
  assert.throws(() => new Waf({ requestBodyLimit: '10mb' }))
  assert.throws(() => middleware({}), /has to be a Waf/)
  assert.throws(() => fastify({}, {}, () => {}), /has to be a Waf/)
})

test('events that nobody takes are bounded', () => {
  const waf = new Waf({ mode: 'both', directives: 'SecAction "id:1,phase:1,pass,log"' })
  for (let count = 0; count < 10_010; count++) waf.begin(HEAD).end()
  const taken = waf.takeEvents().length
  assert.ok(taken <= 10_000)
  assert.strictEqual(taken + waf.eventsDropped(), 10_010)
})

test('calls out of order have no effect', async () => {
  const exchange = new Waf().begin(HEAD)
  exchange.responseEnd(true)
  assert.strictEqual(exchange.responseBody(Buffer.from('early')), false)
  exchange.responseHead(200, ['a', 'b', 'odd'], false)
  const running = exchange.requestEndBeside()
  exchange.end()
  await running
  exchange.end()
  exchange.requestBody(Buffer.from('late'))
  exchange.requestEnd()
  exchange.passed(1, 1)
  assert.strictEqual(exchange.answer(), null)
  assert.strictEqual(exchange.requestId(), '')
})

test('memory for bodies is bounded', () => {
  const fields = ['host', 'a', 'content-type', 'text/plain', 'content-length', '200000']
  const exchange = new Waf({ heldBytesMax: 100_000 }).begin({ ...HEAD, method: 'POST', fields })
  assert.strictEqual(exchange.requestBody(Buffer.alloc(200_000, 'a')), false)
  assert.strictEqual(exchange.answer().status, 503)
})

test('bytes of heads arrive as they came', () => {
  const waf = new Waf({ directives: 'SecRule REQUEST_HEADERS:X "@streq \\xff\\x80" "id:1,phase:1,deny,status:418"' })
  const fields = ['host', 'a', 'x', '\u00ff\u0080']
  assert.strictEqual(waf.begin({ ...HEAD, fields }).answer()?.status, undefined)
  const rx = new Waf({ directives: 'SecRule REQUEST_HEADERS:X "@rx ^\\xff\\x80$" "id:1,phase:1,deny,status:418"' })
  const exchange = rx.begin({ ...HEAD, fields })
  exchange.requestEnd()
  assert.strictEqual(exchange.answer()?.status, 418)
})

test('a reload has a number', () => {
  assert.strictEqual(new Waf().reload(), 2)
})
