'use strict'

// Bodies in very many pieces: each costs its bytes, not an object.

const assert = require('node:assert')
const { once } = require('node:events')
const http = require('node:http')
const net = require('node:net')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const v8 = require('node:v8')
const { runInNewContext } = require('node:vm')
const { Waf, middleware } = require('..')

const CHUNKS = 200_000

/** Bytes that live, of objects and of buffers. */
function bytes () {
  v8.setFlagsFromString('--expose_gc')
  runInNewContext('gc')()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

test('chunks of one byte', async test => {
  const inspect = middleware(new Waf({}))
  let seen = 0
  const server = http.createServer((req, res) => inspect(req, res, async () => {
    const pieces = []
    for await (const piece of req) pieces.push(piece)
    const body = Buffer.concat(pieces)
    res.setHeader('content-length', body.length)
    res.end(body)
  }))
  server.on('connection', socket => socket.on('data', data => { seen += data.length }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.after(() => server.close())
  const client = net.connect(server.address().port, '127.0.0.1')
  client.write('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/plain\r\n' +
    'Transfer-Encoding: chunked\r\n\r\n')
  const letters = Array.from({ length: CHUNKS }, (_, at) => String.fromCharCode(97 + at % 26))
  const before = bytes()
  const sent = letters.map(letter => `1\r\n${letter}\r\n`).join('')
  client.write(sent)
  while (seen < sent.length) await sleep(20)
  const after = bytes()
  client.write('0\r\n\r\n')
  client.setEncoding('latin1')
  let answer = ''
  for await (const piece of client) answer += piece
  assert.ok(answer.startsWith('HTTP/1.1 200'), answer.slice(0, 200))
  assert.strictEqual(answer.slice(answer.indexOf('\r\n\r\n') + 4), letters.join(''))
  // An object for each were some 40 MB.
  assert.ok(after - before < 16e6, `${after - before} bytes`)
})
