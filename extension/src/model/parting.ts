import type { Step } from '../api';

/** Steps of both sides by position, from `from` on; a side that has ended gives undefined. */
export function sideBySide(
  baseline: readonly Step[],
  candidate: readonly Step[],
  from: number
): { index: number; baseline?: Step; candidate?: Step }[] {
  const length = Math.max(baseline.length, candidate.length);
  return Array.from({ length: Math.max(0, length - from) }, (_, offset) => ({
    index: from + offset,
    baseline: baseline[from + offset],
    candidate: candidate[from + offset]
  }));
}
