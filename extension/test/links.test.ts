import { describe, expect, it } from 'vitest';

import { Target, parseTarget, targetKey, targetQuery, withoutTarget } from '../src/model/links';

const TARGETS: Target[] = [
  { lab: 'labs/küche & co', ref: 'refs/harnesslab/rejected/0123' },
  { lab: '.', base: 'HEAD', head: 'refs/heads/main' }
];

describe('links', () => {
  it.each(TARGETS)('an address keeps its target: %o', target => {
    expect(parseTarget(`?${targetQuery(target)}`)).toEqual(target);
  });

  it.each([
    '',
    '?x=1',
    '?harnesslab-lab=a',
    '?harnesslab-ref=HEAD',
    '?harnesslab-lab=a&harnesslab-base=HEAD'
  ])('%s asks for nothing', search => {
    expect(parseTarget(search)).toBeNull();
  });

  it('takes only its own parameters out of an address', () => {
    expect(withoutTarget(`?reset&${targetQuery(TARGETS[0])}`)).toBe('?reset=');
    expect(withoutTarget(`?${targetQuery(TARGETS[0])}`)).toBe('');
  });

  it('different targets have different keys', () => {
    expect(new Set(TARGETS.map(targetKey)).size).toBe(TARGETS.length);
  });
});
