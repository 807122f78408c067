'use strict'

// HTTP/2, which Fastify speaks: bodies need no field that announces them.

const assert = require('node:assert')
const { once } = require('node:events')
const http2 = require('node:http2')
const { test } = require('node:test')
const makeFastify = require('fastify')
const { Waf, fastify } = require('..')

const ATTACK = "1' UNION SELECT password FROM users-- -"
const RULES = 'SecRule RESPONSE_BODY "@contains root:x:0:0" "id:7,phase:4,deny,status:500"'

/** A server, and a function that asks it. */
async function serve (test, options) {
  const events = []
  const app = makeFastify({ http2: true })
  app.register(fastify, { waf: new Waf(options), onEvent: line => events.push(JSON.parse(line)), idleTimeout: 300 })
  app.addContentTypeParser('text/plain', { parseAs: 'string' }, (req, body, done) => done(null, body))
  app.route({ method: ['GET', 'POST'], url: '/', handler: async req => req.body ?? 'hello' })
  app.get('/leak', async (req, reply) => reply.type('text/plain').send('root:x:0:0:root:/root:/bin/bash\n'))
  await app.listen({ port: 0, host: '127.0.0.1' })
  const client = http2.connect(`http://127.0.0.1:${app.server.address().port}`)
  test.after(() => {
    client.destroy()
    return app.close()
  })
  async function ask (path, body, { ends = true, ...fields } = {}) {
    const stream = client.request({ ':path': path, ':method': body === undefined ? 'GET' : 'POST', ...fields })
    if (body !== undefined) stream.write(body)
    if (ends) stream.end()
    const [head] = await once(stream, 'response')
    let text = ''
    for await (const piece of stream) text += piece
    return { status: head[':status'], text }
  }
  return { ask, events }
}

test('http2: requests are inspected, with and without a length', async test => {
  const { ask, events } = await serve(test, {})
  assert.deepStrictEqual(await ask('/'), { status: 200, text: 'hello' })
  const type = { 'content-type': 'text/plain' }
  assert.deepStrictEqual(await ask('/', 'abc', type), { status: 200, text: 'abc' })
  const long = 'abcdefghij'.repeat(30_000)
  assert.strictEqual((await ask('/', long, type)).text.length, long.length)
  assert.strictEqual((await ask(`/?q=${encodeURIComponent(ATTACK)}`)).status, 403)
  assert.strictEqual((await ask('/', ATTACK, type)).status, 403)
  assert.strictEqual((await ask('/', ATTACK, { ...type, 'content-length': ATTACK.length })).status, 403)
  assert.strictEqual(events.length, 3)
  assert.strictEqual(events[0].request.protocol, 'HTTP/2.0')
})

test('http2: slow bodies end', async test => {
  const { ask } = await serve(test, {})
  assert.strictEqual((await ask('/', 'abc', { 'content-type': 'text/plain', ends: false })).status, 408)
})

test('http2: responses are inspected', async test => {
  const { ask } = await serve(test, { directives: RULES, responseBodies: true })
  assert.strictEqual((await ask('/')).status, 200)
  const leak = await ask('/leak')
  assert.strictEqual(leak.status, 500)
  assert.doesNotMatch(leak.text, /root:x/)
})
