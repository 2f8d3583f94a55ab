// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Client, Live, Overview } from '../src/api';
import { Session, nextSearch, nextWait } from '../src/model/session';
import { DEFAULTS } from '../src/model/settings';

const RUNNING = {
  what: 'gate',
  note: '',
  run: null,
  done: 1,
  total: 9,
  updated: '2026-01-01T00:00:00Z',
  stale: false
};

class FakeClient {
  version = 'v1';
  running: Live['running'] = null;
  problem: Error | null = null;
  calls: string[] = [];
  /** How long each of the next answers takes, in milliseconds; then they come at once. */
  delays: number[] = [];
  paths = ['a'];

  async labs(): Promise<unknown> {
    this.calls.push('labs');
    return {
      items: this.paths.map(path => ({ path, name: path, kind: 'lab' })),
      truncated: false,
      problems: []
    };
  }

  async lab(path: string): Promise<Partial<Overview>> {
    this.calls.push(`lab ${path}`);
    return { version: this.version, running: this.running };
  }

  async live(path: string): Promise<Live> {
    this.calls.push(`live ${path}`);
    const delay = this.delays.shift() ?? 0;
    await new Promise(resolve => setTimeout(resolve, delay));
    if (this.problem) {
      throw this.problem;
    }
    return { version: this.version, running: this.running };
  }
}

describe('Session', () => {
  let client: FakeClient;
  let session: Session;

  beforeEach(async () => {
    vi.useFakeTimers();
    client = new FakeClient();
    session = new Session(client as unknown as Client);
  });

  afterEach(() => {
    session.active = false;
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  const count = (prefix: string) => client.calls.filter(call => call.startsWith(prefix)).length;

  it('asks nothing before it is shown', async () => {
    await pass(60_000);
    expect(client.calls).toEqual([]);
  });

  it('chooses the first usable lab and follows it', async () => {
    session.active = true;
    await pass(10);
    expect([session.lab, session.version]).toEqual(['a', 'v1']);
    const before = count('live');
    await pass(6_100);
    expect(count('live') - before).toBeGreaterThanOrEqual(2);
    expect(count('live') - before).toBeLessThanOrEqual(4);
    expect(count('lab ')).toBe(1);
  });

  it('stops when it is hidden', async () => {
    session.active = true;
    await pass(3_000);
    session.active = false;
    const before = client.calls.length;
    await pass(60_000);
    expect(client.calls.length).toBe(before);
  });

  it('reads the lab again only when its token changes', async () => {
    session.active = true;
    await pass(3_000);
    client.version = 'v2';
    await pass(3_000);
    expect([count('lab '), session.version]).toEqual([2, 'v2']);
  });

  it('shows progress within three seconds without reading the lists again', async () => {
    session.active = true;
    await pass(3_000);
    client.running = RUNNING;
    await pass(3_000);
    expect(session.running).toEqual(RUNNING);
    expect(count('lab ')).toBe(1);
  });

  it('backs off from a server that fails, and says so', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999); // the poll waits a random part of what it may
    session.active = true;
    await pass(3_000);
    client.problem = new Error('down');
    await pass(60_000);
    const early = count('live');
    await pass(60_000);
    expect(session.error).toEqual(client.problem);
    expect(count('live') - early).toBeLessThanOrEqual(4);
    client.problem = null;
    await pass(120_000);
    expect(session.error).toBeNull();
  });

  it('is not put off by one slow answer', async () => {
    session.active = true;
    await pass(3_000);
    client.delays = [20_000];
    const slow = count('live');
    await pass(22_100);
    expect(count('live')).toBe(slow + 1);
    client.running = RUNNING;
    await pass(2_100);
    expect(session.running).toEqual(RUNNING);
  });

  it('asks a server less often that is slow again and again', async () => {
    session.active = true;
    await pass(3_000);
    client.delays = Array(6).fill(2_000);
    await pass(30_000);
    const slow = count('live');
    await pass(20_000);
    expect(count('live') - slow).toBeLessThanOrEqual(3);
    expect(count('live') - slow).toBeGreaterThan(0);
    await pass(60_000);
    const quick = count('live');
    await pass(10_000);
    expect(count('live') - quick).toBeGreaterThanOrEqual(4);
  });

  it('looks at once when it is asked to, however long it waits after failures', async () => {
    session.active = true;
    await pass(3_000);
    client.problem = new Error('down');
    await pass(90_000);
    client.problem = null;
    void session.refresh();
    await pass(10);
    const before = count('live');
    expect(session.error).toBeNull();
    await pass(6_100);
    expect(count('live') - before).toBeGreaterThanOrEqual(2);
  });

  it('finds a first lab by itself, with ever longer waits, and only while it is shown', async () => {
    client.paths = [];
    session.active = true;
    await pass(60_000);
    const early = count('labs');
    expect(early).toBeLessThanOrEqual(7);
    session.active = false;
    await pass(60_000);
    expect(count('labs')).toBe(early);
    session.active = true;
    await pass(10);
    client.paths = ['first'];
    await pass(4_100);
    expect([session.lab, session.version]).toEqual(['first', 'v1']);
    const found = count('labs');
    await pass(20_000);
    expect(count('labs')).toBe(found);
  });

  it('drops what belongs to a lab that was left', async () => {
    session.active = true;
    await pass(10);
    client.version = 'of b';
    await session.choose('b');
    expect([session.lab, session.version]).toEqual(['b', 'of b']);
  });

  it('searches again when the roots change', async () => {
    session.active = true;
    await pass(10);
    session.settings = { ...DEFAULTS, roots: ['labs'] };
    await pass(10);
    expect(count('labs')).toBe(2);
  });
});

describe('waits', () => {
  it.each([
    [2_000, 100, 100, 2_000],
    [2_000, 9_000, 0, 2_000],
    [2_000, 9_000, 1_000, 4_000],
    [2_000, 9_000, 9_000, 10_000],
    [60_000, 9_000, 9_000, 60_000]
  ])('usually %i, after answers of %i and %i: %i ms', (usual, last, before, wait) => {
    expect(nextWait(usual, last, before)).toBe(wait);
  });

  it.each([
    [2_000, 10, 4_000],
    [15_000, 10, 15_000],
    [2_000, 1_000, 20_000],
    [15_000, 5_000, 60_000]
  ])('a search after %i ms that took %i ms: %i ms', (waited, took, wait) => {
    expect(nextSearch(waited, took)).toBe(wait);
  });
});
