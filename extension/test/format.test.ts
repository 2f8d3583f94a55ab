import { describe, expect, it } from 'vitest';

import { formatDate, formatDelta, formatNumber, shortRef, sparkline } from '../src/model/format';

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

  it('reads what JSON has no number for', () => {
    expect([0.123456, 'Infinity', null, 12].map(formatNumber)).toEqual([
      '0.1235',
      'Infinity',
      '–',
      '12'
    ]);
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
