'use strict'

// The request body: taken where the parser hands it to the stream, held, and handed on after the verdict. To the
// application it looks as if the body had come later.

/** Bytes of a body above which phase 2 runs on a thread of libuv. */
const LARGE = 64 * 1024

/** Pieces of a body that are held as they came. Later ones are joined: each is an object of some hundred bytes. */
const LOOSE = 16
/** Bytes of the blocks that pieces are joined to. */
const BLOCK = 64 * 1024

/** The pieces of a body, and its end, in the order in which they came. */
class Held {
  #pieces = []
  #block
  #used = 0

  /** Keeps a piece; null is the end. */
  add (piece) {
    if (piece === null || this.#pieces.length < LOOSE) {
      this.#close()
      this.#pieces.push(piece)
      return
    }
    for (let at = 0; at < piece.length;) {
      this.#block ??= Buffer.allocUnsafe(BLOCK)
      const length = piece.copy(this.#block, this.#used, at)
      at += length
      this.#used += length
      if (this.#used === BLOCK) this.#close()
    }
  }

  #close () {
    if (this.#used > 0) this.#pieces.push(this.#block.subarray(0, this.#used))
    this.#block = undefined
    this.#used = 0
  }

  /** Gives all out. */
  take () {
    this.#close()
    return this.#pieces.splice(0)
  }
}

/** True if the request has a body. */
function hasBody (req) {
  if (req.httpVersionMajor >= 2) return !req.stream.endAfterHeaders
  const length = req.headers['content-length']
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/**
 * Shows the body of `req` to `exchange`, then calls `decided`, unless the client has gone. `req` must not have been
 * read before. Returns a function that tells whether phase 2 runs on another thread, as a promise of its end.
 */
function holdRequest (req, exchange, { idleTimeout = 30_000, bodyTimeout = 300_000 }, decided) {
  if (exchange.answer() !== null || !hasBody(req) || !exchange.wantsRequestBody()) {
    exchange.requestEnd()
    decided()
    return () => undefined
  }
  const { push } = req
  const held = new Held()
  let size = 0
  // Bytes that came while the verdict was formed.
  let unseen = 0
  let isOver = false
  let running
  const idle = setTimeout(late, idleTimeout)
  const whole = setTimeout(late, bodyTimeout)

  function stop () {
    isOver = true
    clearTimeout(idle)
    clearTimeout(whole)
    req.removeListener('close', gone)
    req.removeListener('error', gone)
  }

  function finish () {
    if (isOver) return
    stop()
    if (size < LARGE) {
      exchange.requestEnd()
      release()
    } else {
      running = exchange.requestEndBeside().then(() => {
        running = undefined
        release()
      })
    }
  }

  function release () {
    if (exchange.answer() !== null) {
      // The rest of a refused body is dropped.
      req.push = () => true
    } else {
      exchange.passed(unseen, 0)
      req.push = piece => {
        if (piece !== null) exchange.passed(piece.length, 0)
        return push.call(req, piece)
      }
      for (const piece of held.take()) push.call(req, piece)
    }
    held.take()
    decided()
  }

  function late () {
    exchange.requestBroken(true)
    finish()
  }

  function gone () {
    if (isOver) return
    stop()
    held.take()
    req.push = () => true
    exchange.requestBroken(false)
    exchange.end()
  }

  req.push = piece => {
    held.add(piece)
    if (isOver) {
      // False makes the parser wait until the application reads.
      if (piece !== null) unseen += piece.length
      return false
    }
    if (piece === null) {
      finish()
      return true
    }
    idle.refresh()
    size += piece.length
    if (!exchange.requestBody(piece)) finish()
    return true
  }
  req.once('close', gone)
  req.once('error', gone)
  // HTTP/2 sends nothing before it is asked to.
  if (req.httpVersionMajor >= 2) req.read(0)
  return () => running
}

module.exports = { hasBody, holdRequest }
