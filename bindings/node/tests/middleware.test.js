'use strict'

// Middleware behind ours, which replaces methods of the response: compression, and a session kept by hand.

const assert = require('node:assert')
const { once } = require('node:events')
const http = require('node:http')
const { test } = require('node:test')
const { gunzipSync } = require('node:zlib')
const compression = require('compression')
const express = require('express')
const { Waf, middleware } = require('..')

const TEXT = 'hello there, '.repeat(1000)
const LEAK = 'SecRule RESPONSE_BODY "@contains root:x:0:0" "id:7,phase:4,deny,status:500"'
const COOKIE = 'SecRule RESPONSE_HEADERS:Set-Cookie "@contains visits" "id:8,phase:3,deny,status:502"'
const POLICIES = {
  'the semantic detector': {},
  'responses inspected': { mode: 'both', directives: LEAK, responseBodies: true },
  'responses not inspected': { mode: 'crs', directives: LEAK, responseBodies: false }
}

/** Sets a cookie when the head is written, and is saved before the response ends. */
function session (seen) {
  return (req, res, next) => {
    const { writeHead, end } = res
    res.writeHead = (...parameters) => {
      res.appendHeader('set-cookie', 'visits=1')
      return writeHead.apply(res, parameters)
    }
    res.end = (...parameters) => {
      seen.saved++
      return end.apply(res, parameters)
    }
    next()
  }
}

async function serve (test, options) {
  const seen = { saved: 0 }
  const app = express()
  app.use(middleware(new Waf(options)))
  app.use(compression({ threshold: 0 }))
  app.use(session(seen))
  app.get('/whole', (req, res) => res.type('text/plain').send(TEXT))
  app.get('/pieces', (req, res) => {
    res.type('text/plain')
    for (const piece of TEXT.match(/.{1,999}/g)) res.write(piece)
    setTimeout(() => res.end('the end'), 20)
  })
  app.get('/head', (req, res) => {
    res.writeHead(200, { 'content-type': 'text/plain' })
    res.end(TEXT)
  })
  app.get('/leak', (req, res) => res.type('text/plain').send(`root:x:0:0:root:/root:/bin/bash\n${TEXT}`))
  const server = http.createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.after(() => new Promise(resolve => {
    server.close(resolve)
    server.closeAllConnections()
  }))
  async function get (path, coding) {
    const headers = { 'accept-encoding': coding }
    const request = http.get({ port: server.address().port, host: '127.0.0.1', path, headers })
    const [response] = await once(request, 'response')
    const pieces = []
    for await (const piece of response) pieces.push(piece)
    const { statusCode: status, headers: fields } = response
    const body = Buffer.concat(pieces)
    return { status, fields, text: String(fields['content-encoding'] === 'gzip' ? gunzipSync(body) : body) }
  }
  return { get, seen }
}

for (const [name, options] of Object.entries(POLICIES)) {
  test(`middleware behind ours does its work: ${name}`, async test => {
    const { get, seen } = await serve(test, options)
    let saved = 0
    for (const coding of ['gzip', 'identity']) {
      for (const [path, text] of [['/whole', TEXT], ['/pieces', `${TEXT}the end`], ['/head', TEXT]]) {
        const answer = await get(path, coding)
        assert.strictEqual(answer.status, 200, path)
        assert.strictEqual(answer.text, text, path)
        assert.strictEqual(answer.fields['content-encoding'] === 'gzip', coding === 'gzip', path)
        assert.deepStrictEqual(answer.fields['set-cookie'], ['visits=1'], path)
        assert.strictEqual(seen.saved, ++saved, path)
      }
    }
  })
}

test('what middleware adds is inspected', async test => {
  for (const coding of ['gzip', 'identity']) {
    const leaking = await serve(test, POLICIES['responses inspected'])
    const leak = await leaking.get('/leak', coding)
    assert.strictEqual(leak.status, 500, coding)
    assert.strictEqual(leak.fields['content-encoding'], undefined)
    assert.doesNotMatch(leak.text, /root:x/)
    const { get } = await serve(test, { mode: 'both', directives: COOKIE })
    for (const path of ['/whole', '/pieces', '/head']) {
      const answer = await get(path, coding)
      assert.strictEqual(answer.status, 502, path)
      assert.strictEqual(answer.fields['set-cookie'], undefined)
      assert.match(answer.text, /blocked/)
    }
  }
})
