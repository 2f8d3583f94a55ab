import { beforeEach, describe, expect, it, vi } from 'vitest';

import { IPage, PagedList } from '../src/model/pages';

describe('PagedList', () => {
  let asked: number[];
  let total: number;
  let label: string;
  let pending: (() => void)[];
  const changed = vi.fn();
  const failed = vi.fn();

  function make(held = false): PagedList<string> {
    return new PagedList<string>(
      (offset, limit) => {
        asked.push(offset);
        const size = Math.max(0, Math.min(limit, total - offset));
        const page: IPage<string> = {
          items: Array.from({ length: size }, (_, index) => `${label}${offset + index}`),
          total
        };
        return held
          ? new Promise(resolve => pending.push(() => resolve(page)))
          : Promise.resolve(page);
      },
      changed,
      failed,
      10,
      4
    );
  }

  const settle = () => new Promise(resolve => setTimeout(resolve, 0));

  beforeEach(() => {
    asked = [];
    pending = [];
    total = 1000;
    label = 'a';
    changed.mockClear();
    failed.mockClear();
  });

  it('fetches the pages in view once', async () => {
    const list = make();
    list.want(0, 12);
    list.want(3, 15);
    await settle();
    expect(asked).toEqual([0, 10]);
    expect([list.total, list.row(12), list.row(20)]).toEqual([1000, 'a12', undefined]);
  });

  it('keeps old rows until the new ones are here', async () => {
    const list = make();
    list.want(0, 9);
    await settle();
    label = 'b';
    list.invalidate();
    list.want(0, 9);
    expect(list.row(0)).toBe('a0');
    await settle();
    expect(list.row(0)).toBe('b0');
  });

  it('drops answers that come too late', async () => {
    const list = make(true);
    list.want(0, 9);
    label = 'b';
    list.invalidate();
    list.want(0, 9);
    pending[1]();
    await settle();
    pending[0]();
    await settle();
    expect(list.row(0)).toBe('b0');
    expect(changed).toHaveBeenCalledTimes(1);
  });

  it('forgets everything when cleared', async () => {
    const list = make();
    list.want(0, 9);
    await settle();
    list.clear();
    expect([list.total, list.row(0)]).toEqual([null, undefined]);
  });

  it('holds few pages of a long list, and fetches forgotten ones again', async () => {
    const list = make();
    for (let first = 0; first < 1000; first += 10) {
      list.want(first, first + 9);
      await settle();
    }
    const held = Array.from({ length: 100 }, (_, page) => list.row(page * 10)).filter(Boolean);
    expect(held.length).toBeLessThanOrEqual(6);
    list.want(0, 9);
    await settle();
    expect(list.row(0)).toBe('a0');
  });

  it('reports an error once and does not ask again by itself', async () => {
    const list = new PagedList<string>(
      () => {
        asked.push(0);
        return Promise.reject(new Error('down'));
      },
      changed,
      failed
    );
    list.want(0, 0);
    await settle();
    list.want(0, 0);
    await settle();
    expect([asked.length, failed.mock.calls.length]).toEqual([1, 1]);
  });
});
