import { describe, expect, it } from 'vitest';

import { nullTranslator } from '@jupyterlab/translation';

import {
  formatDate,
  formatDelta,
  formatNumber,
  shortPath,
  shortRef,
  sparkline
} from '../src/model/format';
import { factName, factValue } from '../src/model/words';

describe('formatDate', () => {
  const now = Date.parse('2026-01-02T00:00:00Z');

  it.each([
    ['2026-01-01T23:59:30Z', '30 seconds ago'],
    ['2026-01-01T22:00:00Z', '2 hours ago'],
    ['2026-01-01T00:00:00Z', 'yesterday'],
    ['2024-01-02T00:00:00Z', '2 years ago'],
    ['2026-01-02T00:00:00Z', 'now']
  ])('%s is %s', (stamp, words) => {
    expect(formatDate(stamp, 'relative', now, 'en')).toBe(words);
  });

  it('has a short form', () => {
    expect(formatDate('2026-01-01T22:00:00Z', 'short', now, 'en')).toBe('2 hr. ago');
  });

  it('writes ISO in UTC whatever the zone of the stamp', () => {
    expect(formatDate('2026-01-01T02:00:00+02:00', 'iso')).toBe('2026-01-01T00:00:00Z');
  });

  it('leaves text that is no date as it is', () => {
    expect(formatDate('long ago', 'locale')).toBe('long ago');
  });
});

describe('numbers', () => {
  it('gives a delta its sign', () => {
    expect([3, 0, -2, null].map(formatDelta)).toEqual(['+3', '0', '−2', '–']);
  });

  it.each([
    [0.123456, '0.1235'],
    [12, '12'],
    [-5, '−5'],
    [123456.7, '123457'],
    [0, '0'],
    ['Infinity', '∞'],
    ['-inf', '−∞'],
    ['NaN', '–'],
    [null, '–'],
    ['exact', 'exact']
  ])('writes %s as %s', (value, written) => {
    expect(formatNumber(value)).toBe(written);
  });
});

describe('facts', () => {
  const trans = nullTranslator.load('harnesslab');

  it.each([
    ['prompt_tokens', 'Prompt tokens'],
    ['backbone.model', 'Backbone'],
    ['my_own.figure', 'My own figure'],
    ['constructor', 'Constructor']
  ])('%s is called %s', (name, words) => {
    expect(factName(name, trans)).toBe(words);
  });

  it.each([
    ['0.031250001', '0.03125'],
    ['9000', '9000'],
    ['inf', '∞'],
    ['null', '–'],
    ['true', 'yes'],
    ['1+ffdc6fe9', '1+ffdc6fe9'],
    ['exact McNemar', 'exact McNemar']
  ])('%s is written %s', (value, words) => {
    expect(factValue(value, trans)).toBe(words);
  });
});

describe('shortPath', () => {
  const long = 'a-long-project-folder/experiments/kitchen';

  it('leaves a short path as it is', () => {
    expect(shortPath('labs/kitchen', [])).toBe('labs/kitchen');
  });

  it('keeps the end of a long one, and at least its last folder', () => {
    expect(shortPath(long, [long, 'labs/tables'])).toBe('…/experiments/kitchen');
    expect(shortPath(`labs/${'k'.repeat(40)}`, [])).toBe(`…/${'k'.repeat(40)}`);
  });

  it('stays whole where it could be mistaken', () => {
    expect(shortPath(long, [long, 'other/experiments/kitchen'])).toBe(long);
  });
});

describe('shortRef', () => {
  it('shortens commits and full names', () => {
    expect(shortRef('0123456789abcdef0123456789abcdef01234567')).toBe('0123456789');
    expect(shortRef('refs/heads/main')).toBe('main');
    expect(shortRef('refs/harnesslab/rejected/x')).toBe('harnesslab/rejected/x');
  });
});

describe('sparkline', () => {
  it('spreads the values over the box, larger ones higher', () => {
    expect(sparkline([1, 3, 2], 10, 20)).toBe('0,20 5,0 10,10');
  });

  it('leaves gaps out and draws a level line in the middle', () => {
    expect(sparkline([2, null, 2], 10, 20)).toBe('0,10 10,10');
  });

  it('draws nothing from less than two values', () => {
    expect([sparkline([], 10, 10), sparkline([null, 4], 10, 10)]).toEqual(['', '']);
  });
});
