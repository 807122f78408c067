// COUNT attacks, each on a path of its own: node test/fill.mjs SITE COUNT
import assert from 'node:assert/strict';

const [site, count] = process.argv.slice(2);
const attack = encodeURIComponent("1' or '1'='1");
let next = 0;
await Promise.all(Array.from({ length: 8 }, async () => {
  while (next < Number(count)) {
    const number = next;
    next += 1;
    const answer = await fetch(`${site}/long/${number}?q=${attack}`);
    assert.equal(answer.status, 403);
    await answer.arrayBuffer();
  }
}));
