/** A real browser for tests of the console: Debian's Chromium, or the one that CHROMIUM names. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const PLACES = [process.env['CHROMIUM'], '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const PATH = PLACES.find((place) => place !== undefined && existsSync(place));

/** Why tests with a browser are skipped; false if there is one. */
export const NO_BROWSER = PATH === undefined && 'no Chromium is installed (or set CHROMIUM to its path)';

export function openBrowser(): Promise<Browser> {
  if (PATH === undefined) throw new Error('there is no browser');
  return chromium.launch({ executablePath: PATH, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
