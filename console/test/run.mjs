// Runs a test of this folder. If it fails, what each open page shows is printed, and kept with a screenshot:
// node test/run.mjs NAME ARGUMENT...   FAILURES=FOLDER says where.
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { closeAll, pages } from './launch.mjs';

const PRINTED_MAX = 3000;
const [name, ...args] = process.argv.slice(2);
process.argv = [process.argv[0], `${name}.mjs`, ...args];
const began = performance.now();
try {
  await import(`./${name}.mjs`);
  console.log(`${name}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
} catch (error) {
  process.exitCode = 1;
  console.error(`${name} failed after ${((performance.now() - began) / 1000).toFixed(1)} s: ${error.stack ?? error}`);
  const folder = resolve(process.env.FAILURES ?? '../target/console-failures');
  mkdirSync(folder, { recursive: true });
  for (const [number, page] of pages().entries()) {
    const file = `${folder}/${name}-${number}-${process.pid}`;
    const text = await page.evaluate(() => `${location.href}\n${document.querySelector('dialog')?.innerText ?? ''}\n---\n${document.body.innerText}`)
      .catch((problem) => `the page says nothing: ${problem.message}`);
    writeFileSync(`${file}.txt`, text);
    await page.screenshot({ path: `${file}.png`, timeout: 10_000 }).catch(() => undefined);
    console.error(`the page showed (whole in ${file}.txt, as a picture in ${file}.png):\n${text.slice(0, PRINTED_MAX)}`);
  }
} finally {
  await closeAll();
}
