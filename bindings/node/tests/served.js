'use strict'

// Real servers on loopback, and a client that writes bytes.

const { once } = require('node:events')
const http = require('node:http')
const net = require('node:net')
const express = require('express')
const makeFastify = require('fastify')
const { middleware, fastify } = require('..')

const LEAK = 'root:x:0:0:root:/root:/bin/bash\n'

/** The applications. Each echoes bodies at `/`; `/stream` pauses until `wait` is over. */
const applications = {
  express (waf, options, wait) {
    const app = express()
    app.use(middleware(waf, options))
    app.use(express.json())
    app.use(express.urlencoded())
    app.use(express.text({ limit: '10mb', type: ['text/plain', 'multipart/form-data'] }))
    app.all('/', (req, res) => res.send(typeof req.body === 'object' ? JSON.stringify(req.body) : req.body ?? 'hello'))
    app.get('/leak', (req, res) => res.type('text/plain').send(LEAK))
    app.get('/head', (req, res) => res.set('X-Leak', 'yes').send('secret'))
    app.get('/raw', (req, res) => raw(res))
    app.post('/unread', (req, res) => res.send('not read'))
    app.get('/stream', (req, res) => stream(res, wait))
    app.get('/broken', () => { throw new Error('broken') })
    app.get('/broken-later', (req, res) => {
      res.write('begun')
      throw new Error('broken')
    })
    app.use((error, req, res, next) => {
      if (res.headersSent) res.destroy()
      else res.status(500).send(error.message)
    })
    return http.createServer(app)
  },
  async fastify (waf, options, wait) {
    let server
    const app = makeFastify({
      bodyLimit: 10_000_000,
      serverFactory: handler => (server = http.createServer(handler))
    })
    app.register(fastify, { waf, ...options })
    for (const type of ['multipart/form-data', 'application/x-www-form-urlencoded']) {
      app.addContentTypeParser(type, { parseAs: 'string' }, (req, body, done) => done(null, body))
    }
    app.route({ method: ['GET', 'POST'], url: '/', handler: async req => req.body ?? 'hello' })
    app.get('/leak', async (req, reply) => reply.type('text/plain').send(LEAK))
    app.get('/head', async (req, reply) => reply.header('X-Leak', 'yes').send('secret'))
    app.get('/raw', (req, reply) => {
      reply.hijack()
      raw(reply.raw)
    })
    app.post('/unread', async () => 'not read')
    app.get('/stream', (req, reply) => {
      reply.hijack()
      stream(reply.raw, wait)
    })
    app.get('/broken', async () => { throw new Error('broken') })
    app.get('/broken-later', (req, reply) => {
      reply.hijack()
      reply.raw.write('begun')
      reply.raw.destroy()
    })
    await app.ready()
    return server
  }
}

/** Writes a response by the calls of node:http. */
function raw (res) {
  res.setHeader('x-replaced', 'old')
  res.writeHead(201, 'Made', [['x-replaced', 'new'], ['set-cookie', 'a=1'], ['set-cookie', 'b=2']])
  res.flushHeaders()
  res.write(Uint8Array.from([104, 101]))
  res.write('llo', 'latin1', () => res.end(Buffer.from(' there')))
}

async function stream (res, wait) {
  res.setHeader('content-type', 'text/html')
  res.write('first ')
  await wait
  res.end('last')
}

/** Serves an application until the test ends. */
async function serve (test, name, waf, options = {}) {
  const served = { events: [] }
  const onEvent = event => served.events.push(JSON.parse(event))
  const wait = new Promise(resolve => { served.goOn = resolve })
  const server = await applications[name](waf, { onEvent, ...options }, wait)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.after(() => new Promise(resolve => {
    server.close(resolve)
    server.closeAllConnections()
  }))
  served.port = server.address().port
  served.get = (target, fields = '') =>
    ask(served.port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${fields}\r\n`)
  served.post = (target, type, body, fields = '') => ask(
    served.port,
    `POST ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: ${type}\r\n${fields}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  )
  return served
}

/** Status and text of the answer to a request that closes its connection. */
async function ask (port, text) {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(text)
  let answer = ''
  socket.on('data', piece => { answer += piece })
  await once(socket, 'close')
  return { status: Number(answer.slice(9, 12)), text: answer }
}

module.exports = { applications, serve, ask }
