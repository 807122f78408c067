'use strict'

// The Portcullis web application firewall inside an application: middleware for Express and other frameworks with
// (req, res, next), and a plugin for Fastify.

const native = require('./portcullis.node')
const { hasBody, holdRequest } = require('./request.js')
const { holdResponse } = require('./response.js')

const SETTINGS = new Set([
  'document', 'site', 'route', 'mode', 'level', 'crs', 'paranoia', 'rules', 'directives', 'detectOnly',
  'requestBodyLimit', 'responseBodies', 'failOpen', 'blockPage', 'heldBytesMax'
])

/** A policy at work. A setting that does not exist would have no effect, so it is an error. */
class Waf extends native.Waf {
  constructor (settings = {}) {
    for (const name of Object.keys(settings)) {
      if (!SETTINGS.has(name)) {
        throw new TypeError(`portcullis-waf: there is no setting \`${name}\`; there are: ${[...SETTINGS].join(', ')}`)
      }
    }
    super(settings)
  }
}

/** Address and port of the other end of the connection. */
function peer (req) {
  return [req.socket.remoteAddress ?? '', req.socket.remotePort ?? 0]
}

/** The fields of a request as they came; those of HTTP/2 that are no fields left out, with the host as a field. */
function fieldsOf (req) {
  if (req.httpVersionMajor < 2) return req.rawHeaders
  const fields = []
  for (let at = 0; at + 1 < req.rawHeaders.length; at += 2) {
    if (!req.rawHeaders[at].startsWith(':')) fields.push(req.rawHeaders[at], req.rawHeaders[at + 1])
  }
  if (req.headers.host === undefined && req.authority) fields.push('host', req.authority)
  return fields
}

/** Begins the exchange of a request. */
function begin (waf, req, client) {
  const [address, port] = client(req)
  return waf.begin({
    method: req.method,
    // Express changes `url` for routers that are mounted below a path.
    target: req.originalUrl ?? req.url,
    version: req.httpVersion,
    fields: fieldsOf(req),
    client: address,
    port,
    tls: req.socket.encrypted === true,
    mayHaveBody: req.httpVersionMajor >= 2 && hasBody(req)
  })
}

/** Sends the answer of an exchange in place of the application's; `write` writes its head and body. */
function sendAnswer (req, res, answer, write = body => res.end(body)) {
  res.statusCode = answer.status
  if (req.httpVersionMajor < 2) {
    res.statusMessage = undefined
    // Nobody waits for the rest of the request.
    if (!req.complete) res.setHeader('connection', 'close')
  }
  for (let at = 0; at + 1 < answer.fields.length; at += 2) res.setHeader(answer.fields[at], answer.fields[at + 1])
  res.setHeader('content-length', answer.body.length)
  write(answer.body)
}

/** Hands events on. A sink that throws has lost one, and does not stop the application. */
function report (waf, sink) {
  for (const line of waf.takeEvents()) {
    try {
      sink(line)
    } catch (error) {
      process.emitWarning(`portcullis-waf: onEvent lost an event: ${error}`)
    }
  }
}

/** Throws unless `waf` is one. */
function check (waf) {
  if (!(waf instanceof Waf)) throw new TypeError('portcullis-waf: `waf` has to be a Waf: new Waf({ ... })')
}

/**
 * Shows a request to the engine and calls `next` if it may pass; its response is shown, too. It has to run
 * before anything reads the request, in the same turn of the event loop in which the request came.
 */
function inspect (waf, req, res, options, next) {
  let exchange
  try {
    exchange = begin(waf, req, options.client ?? peer)
  } catch (error) {
    // A request that cannot be inspected does not reach the application.
    next(error)
    return
  }
  const send = (answer, write) => sendAnswer(req, res, answer, write)
  // Not `const`: a verdict may come while `holdRequest` runs.
  let running = () => undefined
  const end = () => {
    exchange.end()
    if (options.onEvent !== undefined) report(waf, options.onEvent)
  }
  res.once('close', () => {
    const phase = running()
    if (phase === undefined) end()
    else phase.then(end)
  })
  running = holdRequest(req, exchange, options, () => {
    const answer = exchange.answer()
    if (answer === null) {
      holdResponse(res, exchange, send)
      next()
    } else if (!res.headersSent && !res.destroyed) {
      send(answer)
    }
  })
}

/** Middleware for Express, Connect and plain node:http. */
function middleware (waf, options = {}) {
  check(waf)
  return (req, res, next) => inspect(waf, req, res, options, next)
}

/** A plugin for Fastify; register it before all others. */
function fastify (instance, options, done) {
  check(options.waf)
  instance.addHook('onRequest', (request, reply, next) => {
    inspect(options.waf, request.raw, reply.raw, options, next)
  })
  done()
}
// Its hook is one of the whole instance, not of a scope.
fastify[Symbol.for('skip-override')] = true

module.exports = { Waf, Exchange: native.Exchange, middleware, fastify }
