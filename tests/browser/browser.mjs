// Debian's Chromium, and the checks that every page must pass in it.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { WAIT_MS } from '../github/patience.mjs';

// The headless shell needs half the processor time of the whole browser, and draws the same pages.
const PROGRAMS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const CHROMIUM = process.env.CHROMIUM ?? PROGRAMS.find((program) => existsSync(program)) ?? PROGRAMS[0];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const noBrowser = existsSync(CHROMIUM) ? false : `${CHROMIUM} is not installed`;
export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1440, height: 900 };
export const NARROW = { width: 320, height: 640 };

export const launch = () => chromium.launch({ executablePath: CHROMIUM, timeout: WAIT_MS, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'] });

// A separate browser window that records its errors.
export class Window {
  problems = []; // console errors, exceptions in scripts, requests to other origins
  answers = [];

  static async open(browser, { origin, size = DESK, theme = 'light', ...more }) {
    const self = new Window();
    self.origin = origin;
    self.context = await browser.newContext({ viewport: size, colorScheme: theme, locale: 'en-GB', timezoneId: 'Asia/Tokyo', reducedMotion: 'reduce', ...more });
    self.page = await self.context.newPage();
    self.page.setDefaultTimeout(WAIT_MS);
    self.page.on('console', (message) => {
      // The browser also reports a page that is 404 on purpose.
      if (message.type() === 'error' && !/status of 404/.test(message.text())) self.problems.push(`console: ${message.text()}`);
    });
    self.page.on('pageerror', (error) => self.problems.push(`script: ${error.message}`));
    self.page.on('request', (request) => {
      const { protocol, origin: requested } = new URL(request.url());
      if (!['data:', 'blob:'].includes(protocol) && requested !== origin) self.problems.push(`requests ${request.url()}`);
    });
    self.page.on('response', (response) => self.answers.push({ url: response.url().slice(origin.length), status: response.status() }));
    return self;
  }

  // Waits until the page's script has rendered a heading.
  async visit(path) {
    const response = await this.page.goto(`${this.origin}${path}`, { waitUntil: 'load' });
    await this.page.locator('h1').first().waitFor();
    return response;
  }

  text(selector = 'main') { return this.page.locator(selector).first().innerText(); }

  // axe-core's rules for WCAG 2.1 A and AA and its best practices; isOfColours: of these rules only the ones about colours.
  async violations({ isOfColours = false } = {}) {
    // Playwright evaluates outside the page's Content-Security-Policy, so that the policy stays in force.
    if (!await this.page.evaluate(() => Boolean(window.axe))) await this.page.evaluate(`${AXE}; undefined`);
    return this.page.evaluate(async (onlyColours) => {
      const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'];
      const ofColours = window.axe.getRules(tags).filter((rule) => rule.tags.includes('cat.color')).map(({ ruleId }) => ruleId);
      if (ofColours.length === 0) throw new Error('axe-core has no rules about colours');
      // Without resultTypes it describes each element that passes a rule, which takes most of the time.
      const found = await window.axe.run(document, { runOnly: onlyColours ? ofColours : tags, resultTypes: ['violations'] });
      return found.violations.map(({ id, help, nodes }) => `${id}: ${help} (${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')})`);
    }, isOfColours);
  }

  // The width in pixels by which the page overflows on the right, which makes a phone scroll sideways.
  overflow() {
    return this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }

  // Up to `limit` elements that Tab reaches. hasRing: the element's focus is visible.
  async walk(limit = 60) {
    const seen = [];
    await this.page.evaluate(() => document.activeElement?.blur());
    for (let i = 0; i < limit; i++) {
      await this.page.keyboard.press('Tab');
      const one = await this.page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return null;
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
        const { width, height } = element.getBoundingClientRect();
        return { what: element.outerHTML.slice(0, 120), isVisible: width > 0 && height > 0, hasRing: (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none' };
      });
      if (!one) break;
      seen.push(one);
    }
    return seen;
  }

  clean() { assert.deepEqual(this.problems, [], 'the window has no errors'); }
  close() { return this.context.close(); }
}
