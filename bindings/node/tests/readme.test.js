'use strict'

// The program of README.md does what stands there.

const assert = require('node:assert')
const { once } = require('node:events')
const { readFileSync } = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')
const { ask } = require('./served.js')

test('readme: a first block', async test => {
  const text = readFileSync(path.join(__dirname, '..', 'README.md'), 'utf8')
  const [, program] = /```js\n(.*?)```/s.exec(text)
  const [, attack] = /curl -i 'http:\/\/127.0.0.1:8000(\/\?q=%3C[^']*)'/.exec(text)
  const told = []
  const run = new Function('require', 'console', program.replace('app.listen(8000', 'return app.listen(0'))
  const find = name => require(name === 'portcullis-waf' ? '..' : name)
  const server = run(find, { log: line => told.push(line) })
  test.after(() => server.close())
  await once(server, 'listening')
  const get = target => ask(server.address().port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  assert.match((await get('/?q=shoes')).text, /^HTTP\/1.1 200 [^]*hello$/)
  assert.strictEqual((await get(attack)).status, 403)
  assert.strictEqual(told.length, 1)
})
