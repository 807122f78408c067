'use strict'

const assert = require('node:assert')
const { once } = require('node:events')
const net = require('node:net')
const { test } = require('node:test')
const { Waf } = require('..')
const { applications, serve, ask } = require('./served.js')

const ATTACK = "1' UNION SELECT password FROM users-- -"
const QUERY = '/?q=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-'
const MULTIPART = 'multipart/form-data; boundary=x'
const RULES = `
SecRule RESPONSE_BODY "@contains root:x:0:0" "id:7,phase:4,deny,status:500"
SecRule RESPONSE_HEADERS:X-Leak "@streq yes" "id:9,phase:3,deny,status:502"
SecRule REQUEST_HEADERS:X-Test "@streq bad" "id:8,phase:1,deny,status:418"
`
const POST = 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/plain\r\n'

const multipart = value => `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n${value}\r\n--x--\r\n`
const chunk = text => `${text.length.toString(16)}\r\n${text}\r\n`

for (const name of Object.keys(applications)) {
  test(`${name}: attacks are blocked wherever they are`, async test => {
    const served = await serve(test, name, new Waf({ site: 'shop' }))
    assert.strictEqual((await served.get('/?q=shoes')).status, 200)
    assert.strictEqual((await served.post('/', MULTIPART, multipart('shoes'))).status, 200)
    const blocked = await served.get(QUERY)
    assert.strictEqual(blocked.status, 403)
    assert.match(blocked.text, /This request was blocked/)
    const json = JSON.stringify({ note: '<script>alert(document.cookie)</script>' })
    assert.strictEqual((await served.post('/', 'application/json', json)).status, 403)
    assert.strictEqual((await served.post('/', 'application/x-www-form-urlencoded', `a=${ATTACK}`)).status, 403)
    assert.strictEqual((await served.post('/', MULTIPART, multipart(ATTACK))).status, 403)
    assert.strictEqual((await served.post('/unread', 'text/plain', ATTACK)).status, 403)
    const chunked = `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk(ATTACK)}0\r\n\r\n`
    assert.strictEqual((await ask(served.port, chunked)).status, 403)
    assert.strictEqual(served.events.length, 6)
    for (const event of served.events) {
      assert.strictEqual(event.integration.kind, 'embedded')
      assert.strictEqual(event.client.addr, '127.0.0.1')
    }
  })

  test(`${name}: bodies go on as they came`, async test => {
    const served = await serve(test, name, new Waf())
    const body = 'abcdefghij'.repeat(30_000)
    assert.ok((await served.post('/', 'text/plain', body)).text.endsWith(body))
    assert.match((await served.post('/', 'application/json', '{"a":1}')).text, /\{"a":1\}$/)
    const chunked = `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk('abc')}${chunk('de')}0\r\n\r\n`
    assert.match((await ask(served.port, chunked)).text, /abcde$/)
    assert.match((await served.post('/unread', 'text/plain', 'abc')).text, /not read$/)
    assert.match((await served.post('/', 'text/plain', '')).text, /^HTTP\/1.1 200/)
  })

  test(`${name}: limits of size and time`, async test => {
    const waf = new Waf({ requestBodyLimit: 1000 })
    const served = await serve(test, name, waf, { idleTimeout: 300, bodyTimeout: 1500 })
    assert.strictEqual((await served.post('/', 'text/plain', 'a'.repeat(1000))).status, 200)
    assert.strictEqual((await served.post('/', 'text/plain', 'a'.repeat(1001))).status, 413)
    const long = `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk('a'.repeat(100)).repeat(11)}0\r\n\r\n`
    assert.strictEqual((await ask(served.port, long)).status, 413)
    // The connection ends though the client wants to keep it.
    const slow = `${POST.replace('close', 'keep-alive')}Content-Length: 10\r\n\r\nabc`
    assert.strictEqual((await ask(served.port, slow)).status, 408)
    assert.match(waf.metrics(), /reason="timeout"/)
  })

  test(`${name}: a body that drips ends, too`, async test => {
    const served = await serve(test, name, new Waf(), { idleTimeout: 60_000, bodyTimeout: 500 })
    const socket = net.connect(served.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`${POST}Content-Length: 1000000\r\n\r\n`)
    const drip = setInterval(() => socket.write('a'), 20)
    test.after(() => clearInterval(drip))
    const [answer] = await once(socket, 'data')
    assert.match(String(answer), /^HTTP\/1.1 408/)
    socket.destroy()
  })

  test(`${name}: rules inspect requests and responses`, async test => {
    const waf = new Waf({ mode: 'both', directives: RULES, responseBodies: true })
    const served = await serve(test, name, waf)
    assert.strictEqual((await served.get('/', 'X-Test: bad\r\n')).status, 418)
    const leak = await served.get('/leak')
    assert.strictEqual(leak.status, 500)
    assert.doesNotMatch(leak.text, /root:x/)
    const head = await served.get('/head')
    assert.strictEqual(head.status, 502)
    assert.doesNotMatch(head.text, /secret|X-Leak/i)
    assert.match((await served.get('/')).text, /hello$/)
  })

  test(`${name}: responses go on as they were written`, async test => {
    for (const options of [{}, { mode: 'both', directives: RULES, responseBodies: true }]) {
      const served = await serve(test, name, new Waf(options))
      const { text } = await served.get('/raw')
      assert.match(text, /^HTTP\/1.1 201 Made\r\n/)
      assert.match(text, /set-cookie: a=1\r\nset-cookie: b=2\r\n/i)
      assert.match(text, /x-replaced: new/)
      assert.doesNotMatch(text, /old/)
      assert.match(text.replace(/\r\n[0-9a-f]+\r\n/g, ''), /hello there/)
    }
  })

  test(`${name}: a stream that pauses is not held for ever`, async test => {
    const served = await serve(test, name, new Waf())
    const socket = net.connect(served.port, '127.0.0.1')
    socket.write('GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    let answer = ''
    while (!answer.includes('first ')) answer += (await once(socket, 'data'))[0]
    // It came while the application still waits.
    served.goOn()
    socket.on('data', piece => { answer += piece })
    await once(socket, 'close')
    assert.match(answer, /last/)
  })

  test(`${name}: a client that goes leaves an event`, async test => {
    const waf = new Waf({ mode: 'both', directives: 'SecAction "id:1,phase:1,pass,log"' })
    let told
    const event = new Promise(resolve => { told = resolve })
    const served = await serve(test, name, waf, { onEvent: line => told(JSON.parse(line)) })
    const socket = net.connect(served.port, '127.0.0.1')
    socket.end('POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc')
    socket.on('error', () => {})
    assert.strictEqual((await event).matches[0].rule_id, 1)
  })

  test(`${name}: applications that fail`, async test => {
    for (const options of [{}, { mode: 'both', directives: RULES, responseBodies: true }]) {
      const served = await serve(test, name, new Waf(options))
      assert.strictEqual((await served.get('/broken')).status, 500)
      // The part that was held of a response that breaks off is not sent.
      assert.strictEqual((await served.get('/broken-later')).text, '')
      assert.strictEqual((await served.get('/')).status, 200)
    }
  })

  test(`${name}: what cannot be inspected is refused unless told otherwise`, async test => {
    const coding = 'Content-Encoding: compress\r\n'
    const closed = await serve(test, name, new Waf())
    const { status } = await closed.post('/unread', 'text/plain', 'ab', coding)
    assert.ok(status >= 400, String(status))
    assert.strictEqual(closed.events.length, 1)
    // The application reads no such coding either, so it is one that does not read the body.
    const open = await serve(test, name, new Waf({ failOpen: true }))
    await open.post('/unread', 'text/plain', 'ab', coding)
    assert.strictEqual(open.events[0].verdict.action, 'pass')
    assert.strictEqual(open.events[0].exceptions[0].policy, 'open')
    const client = () => { throw new Error('no such field') }
    const unknown = await serve(test, name, new Waf(), { client })
    assert.strictEqual((await unknown.get('/')).status, 500)
  })
}
