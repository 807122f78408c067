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

/** Shows what is written to `res` to `exchange`; `send` sends an answer in place of it. */
function holdResponse (res, exchange, send) {
  const { writeHead, write, end, flushHeaders } = res
  // The calls that wait for the verdict.
  const held = []
  let hasHead = false
  let isOver = false
  let timer

  /** Phase 3. From here on the head is sent as far as the application can tell. */
  function head () {
    if (hasHead) return
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

  /** Phase 4, and the verdict. */
  function decide (isWhole) {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    exchange.responseEnd(isWhole)
    delete res.headersSent
    Object.assign(res, { writeHead, write, end, flushHeaders })
    const answer = exchange.answer()
    if (answer !== null) {
      for (const name of res.getHeaderNames()) res.removeHeader(name)
      send(answer)
      // The rest of the application's response is dropped.
      Object.assign(res, { writeHead: () => res, write: () => true, end: () => res, flushHeaders: () => {} })
      return
    }
    res.write = (...parameters) => {
      exchange.passed(0, bytesOf(...parameters).length)
      return write.apply(res, parameters)
    }
    res.end = (...parameters) => {
      exchange.passed(0, bytesOf(...parameters).length)
      return end.apply(res, parameters)
    }
    for (const [method, parameters] of held) method.apply(res, parameters)
    held.length = 0
  }

  function show (parameters) {
    const bytes = bytesOf(...parameters)
    return bytes.length === 0 || exchange.responseBody(bytes)
  }

  res.writeHead = (status, message, fields) => {
    if (hasHead) return isOver ? res.writeHead(status, message, fields) : res
    res.statusCode = status
    if (typeof message === 'string') res.statusMessage = message
    const pairs = pairsOf(typeof message === 'string' ? fields : message ?? fields)
    for (const [name] of pairs) res.removeHeader(name)
    for (const [name, value] of pairs) res.appendHeader(name, value)
    head()
    return res
  }
  res.flushHeaders = () => {
    if (hasHead && isOver) return res.flushHeaders()
    head()
    if (isOver) res.flushHeaders()
    else held.push([flushHeaders, []])
  }
  res.write = (...parameters) => {
    head()
    if (isOver) return res.write(...parameters)
    const [pieces, callback] = split(parameters)
    // The application may wait for it before it writes more.
    if (callback !== undefined) process.nextTick(callback)
    held.push([write, pieces])
    if (!show(pieces)) decide(false)
    return true
  }
  res.end = (...parameters) => {
    head()
    if (isOver) return res.end(...parameters)
    const [pieces, callback] = split(parameters)
    if (callback !== undefined) res.once('finish', callback)
    held.push([end, pieces])
    show(pieces)
    decide(true)
    return res
  }
}

module.exports = { holdResponse }
