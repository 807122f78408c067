'use strict'

// The response: calls of the application that write it are held as far as it is inspected, and made after the verdict.

/** Name and value pairs of what `writeHead` takes: an object, pairs, or names and values by turns. */
function pairsOf (fields) {
  if (fields === undefined || fields === null) return []
  if (!Array.isArray(fields)) return Object.entries(fields)
  if (Array.isArray(fields[0])) return fields
  const pairs = []
  for (let at = 0; at + 1 < fields.length; at += 2) pairs.push([fields[at], fields[at + 1]])
  return pairs
}

/** The bytes of a piece that is written, none for what is no piece. */
function bytesOf (piece, encoding) {
  if (piece === null || piece === undefined || typeof piece === 'function') return Buffer.alloc(0)
  if (typeof piece === 'string') return Buffer.from(piece, typeof encoding === 'string' ? encoding : 'utf8')
  return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
}

/** The parameters of `write` or `end`, and the callback among them. */
function split (parameters) {
  const at = parameters.findIndex(parameter => typeof parameter === 'function')
  return at < 0 ? [parameters, undefined] : [parameters.slice(0, at), parameters[at]]
}

/** States of a response: its calls wait for the verdict, are made, or are dropped. */
const HELD = 0
const OPEN = 1
const BLOCKED = 2

/**
 * Shows what is written to `res` to `exchange`; `send` sends an answer in place of it. Middleware behind this one may
 * replace the same methods by its own, which call ours: ours stay in place.
 */
function holdResponse (res, exchange, send) {
  const { writeHead, write, end, flushHeaders } = res
  // The calls that wait for the verdict.
  const held = []
  let state = HELD
  let hasHead = false
  // True while the head is only made because a body begins.
  let isImplicit = false
  let timer

  /** Calls a method of Node.js. It calls others of `res`, which are ours and those of middleware, a second time. */
  function direct (method, parameters) {
    const replaced = { writeHead: res.writeHead, write: res.write }
    Object.assign(res, { writeHead, write })
    try {
      return method.apply(res, parameters)
    } finally {
      Object.assign(res, replaced)
    }
  }

  /** Phase 3. From here on the head is sent as far as the application can tell. */
  function head () {
    hasHead = true
    const fields = []
    for (const [name, value] of Object.entries(res.getHeaders())) {
      for (const one of Array.isArray(value) ? value : [value]) fields.push(name, String(one))
    }
    exchange.responseHead(res.statusCode, fields, false)
    if (exchange.answer() !== null || !exchange.wantsResponseBody()) {
      decide(true)
      return
    }
    Object.defineProperty(res, 'headersSent', { get: () => true, configurable: true })
    const wait = exchange.responseWaitMax()
    // Only the semantic detector inspects the body: the rest does not wait for it.
    if (wait !== null) timer = setTimeout(() => decide(false), wait)
  }

  /** The head that Node.js makes when a body begins; middleware adds its fields to it in `writeHead`. */
  function implicitHead () {
    if (hasHead) return
    isImplicit = true
    try {
      res.writeHead(res.statusCode)
    } finally {
      isImplicit = false
    }
    if (!hasHead) head()
  }

  /** Phase 4, and the verdict. */
  function decide (isWhole) {
    if (state !== HELD) return
    clearTimeout(timer)
    exchange.responseEnd(isWhole)
    delete res.headersSent
    const answer = exchange.answer()
    if (answer !== null) {
      // The rest of the application's response is dropped.
      state = BLOCKED
      for (const name of res.getHeaderNames()) res.removeHeader(name)
      send(answer, body => {
        direct(writeHead, [answer.status])
        direct(end, [body])
      })
    } else {
      state = OPEN
      for (const [method, parameters] of held) direct(method, parameters)
    }
    held.length = 0
  }

  function show (parameters) {
    const bytes = bytesOf(...parameters)
    return bytes.length === 0 || exchange.responseBody(bytes)
  }

  /** A call that is not held: made, with its bytes counted, or dropped. */
  function go (method, parameters, dropped) {
    if (state === OPEN) {
      if (method !== flushHeaders) exchange.passed(0, bytesOf(...parameters).length)
      return direct(method, parameters)
    }
    const callback = split(parameters)[1]
    if (callback !== undefined) process.nextTick(callback)
    return dropped
  }

  res.writeHead = (status, message, fields) => {
    if (state === OPEN) return direct(writeHead, [status, message, fields])
    if (hasHead) return res
    res.statusCode = status
    if (typeof message === 'string') res.statusMessage = message
    const pairs = pairsOf(typeof message === 'string' ? fields : message ?? fields)
    for (const [name] of pairs) res.removeHeader(name)
    for (const [name, value] of pairs) res.appendHeader(name, value)
    // Node.js sends another framing behind a head that was written than behind one that it makes itself.
    if (!isImplicit) held.push([writeHead, [status]])
    head()
    return res
  }
  res.flushHeaders = () => {
    implicitHead()
    if (state !== HELD) return go(flushHeaders, [])
    held.push([flushHeaders, []])
  }
  res.write = (...parameters) => {
    implicitHead()
    if (state !== HELD) return go(write, parameters, true)
    const [pieces, callback] = split(parameters)
    // The application may wait for it before it writes more.
    if (callback !== undefined) process.nextTick(callback)
    held.push([write, pieces])
    if (!show(pieces)) decide(false)
    return true
  }
  res.end = (...parameters) => {
    implicitHead()
    if (state !== HELD) return go(end, parameters, res)
    const [pieces, callback] = split(parameters)
    if (callback !== undefined) res.once('finish', callback)
    held.push([end, pieces])
    show(pieces)
    decide(true)
    return res
  }
}

module.exports = { holdResponse }
