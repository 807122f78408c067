// Debian's Chromium, without what it would ask of other hosts.

import { chromium } from 'playwright-core';

const browsers = [];

export async function launch() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  browsers.push(browser);
  return browser;
}

/** Pages that are open in any browser of this process. */
export function pages() {
  return browsers.flatMap((browser) => browser.contexts()).flatMap((context) => context.pages());
}

export async function closeAll() {
  await Promise.all(browsers.map((browser) => browser.close().catch(() => undefined)));
}
