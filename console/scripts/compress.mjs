// Writes each text of dist/ as gzip, too, and fails if the first load is larger than allowed: the page and all that it
// names. Pages that are loaded on demand are printed as well.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const FIRST_LOAD_BYTES_MAX = 150 * 1024;
const dist = new URL('../dist/', import.meta.url).pathname;

function files(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

const page = readFileSync(join(dist, 'index.html'), 'utf8');
let total = 0;
for (const path of files(dist).filter((path) => /\.(html|js|css|svg)$/.test(path))) {
  const packed = gzipSync(readFileSync(path), { level: 9 });
  writeFileSync(`${path}.gz`, packed);
  const name = path.slice(dist.length);
  if (name === 'index.html' || page.includes(name)) total += packed.length;
  else console.log(`later: ${name}, ${packed.length} bytes as gzip`);
}
console.log(`first load: ${total} bytes as gzip, of ${FIRST_LOAD_BYTES_MAX}`);
if (total > FIRST_LOAD_BYTES_MAX) {
  console.error('the first load is too large');
  process.exit(1);
}
