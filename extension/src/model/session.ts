import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import type { Client, Labs, Live, Overview } from '../api';
import { DEFAULTS, ISettings } from './settings';

/** A look at the lab may take at most this share of the time, as long as that means no wait longer than SLOWEST_MS. */
const LOOK_DUTY = 0.25;
const SLOWEST_MS = 10_000;

/** The same for a search for labs, which reads folders. */
const SEARCH_DUTY = 0.05;
const SEARCH_MS = 15_000;

/**
 * How long to wait before the next look, in milliseconds.
 *
 * A server whose last two answers both were slow is asked less often. One slow answer changes nothing: the machine
 * was busy, and a run that starts now is to be seen.
 *
 * @param usual what the user has set; `last` and `before` are how long the last two answers took.
 */
export function nextWait(usual: number, last: number, before: number): number {
  return Math.max(usual, Math.min(SLOWEST_MS, Math.min(last, before) / LOOK_DUTY));
}

/** How long to wait before the next search for a first lab: twice as long as before it, up to a bound. */
export function nextSearch(waited: number, took: number): number {
  return Math.max(Math.min(SEARCH_MS, 2 * waited), Math.min(4 * SEARCH_MS, took / SEARCH_DUTY));
}

/**
 * What the sidebar knows: the labs that were found, the chosen one, and its state.
 *
 * It asks `GET /live` while it is active (the sidebar is visible and so is the page) and reads the rest again only when the
 * change token differs. Failures back off; a slow server is asked less often. While there is no lab it searches for one.
 */
export class Session {
  /**
   * @param remembered the lab that was shown when the page was left; it is chosen again if it can still be read.
   */
  constructor(
    readonly client: Client,
    private _remembered: Promise<string | null> = Promise.resolve(null)
  ) {
    this._poll = new Poll({
      auto: false,
      name: 'harnesslab:live',
      frequency: { interval: DEFAULTS.refreshInterval * 1000, backoff: 2, max: 60_000 },
      standby: () => (this._active ? 'when-hidden' : true),
      factory: () => this._turn()
    });
  }

  /** Emitted when anything that is shown may have changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get labs(): Labs | null {
    return this._labs;
  }

  /** Path of the chosen lab below the Jupyter root. */
  get lab(): string | null {
    return this._lab;
  }

  get overview(): Overview | null {
    return this._overview;
  }

  /** The change token of what is shown; lists are read again when it changes. */
  get version(): string {
    return this._version;
  }

  get running(): Live['running'] {
    return this._running;
  }

  /** What went wrong last, or null. */
  get error(): unknown {
    return this._error;
  }

  get busy(): boolean {
    return this._pending > 0;
  }

  get settings(): ISettings {
    return this._settings;
  }

  set settings(settings: ISettings) {
    const search =
      settings.roots.join('\n') !== this._settings.roots.join('\n') ||
      settings.searchDepth !== this._settings.searchDepth;
    this._settings = settings;
    this._waitUsual();
    if (search && this._labs) {
      void this.findLabs();
    }
    this._changed.emit();
  }

  /** Start or stop following; the sidebar calls it when it is shown or hidden. */
  set active(active: boolean) {
    if (active === this._active) {
      return;
    }
    this._active = active;
    if (!active) {
      void this._poll.stop();
    } else if (this._labs === null) {
      void this.findLabs().then(() => this._wake());
    } else {
      void this.refresh();
    }
  }

  /** Search for labs, and choose one where none is chosen. */
  async findLabs(): Promise<void> {
    await this._guard(async () => {
      this._labs = await this.client.labs(this._settings.roots, this._settings.searchDepth);
    });
    await this._chooseFirst();
  }

  /** Search for labs once more without a word about it, because their list is about to be looked at. */
  async searchAgain(): Promise<void> {
    await this._search().catch(() => undefined); // the next look at the chosen lab tells what is wrong
  }

  /** Show another lab. */
  async choose(lab: string): Promise<void> {
    if (lab !== this._lab) {
      this._lab = lab;
      this._overview = null;
      this._running = null;
      this._version = '';
      this._took = 0;
    }
    await this.refresh();
  }

  /** Read the chosen lab again, now. */
  async refresh(): Promise<void> {
    if (this._lab !== null) {
      await this._guard(() => this._read());
    }
    await this._wake();
  }

  /** Look now, and from then on at the usual interval. */
  private async _wake(): Promise<void> {
    this._waitUsual();
    if (this._active) {
      // Not `start`: that one does not cut a wait short, not even a long one after failures.
      await this._poll.refresh();
    }
  }

  private async _turn(): Promise<void> {
    const lab = this._lab;
    try {
      await (lab === null ? this._searchOn() : this._look(lab));
    } catch (error) {
      if (lab === this._lab) {
        this._error = error;
        this._changed.emit();
        throw error; // lets the poll back off
      }
    }
  }

  private async _searchOn(): Promise<void> {
    const started = performance.now();
    await this._search();
    this._setInterval(nextSearch(this._poll.frequency.interval, performance.now() - started));
    await this._chooseFirst();
  }

  private async _search(): Promise<void> {
    const labs = await this.client.labs(this._settings.roots, this._settings.searchDepth);
    const found = JSON.stringify(labs) !== JSON.stringify(this._labs);
    this._labs = labs;
    if (this._lab === null && this._error !== null) {
      this._error = null;
      this._changed.emit();
    } else if (found) {
      this._changed.emit();
    }
  }

  private async _chooseFirst(): Promise<void> {
    const remembered = await this._remembered.catch(() => null);
    this._remembered = Promise.resolve(null);
    if (remembered !== null && this._lab === null && (await this._answers(remembered))) {
      await this.choose(remembered);
    }
    const usable = this._labs?.items.at(0);
    if (this._lab === null && usable) {
      await this.choose(usable.path);
    }
  }

  private async _answers(lab: string): Promise<boolean> {
    return this.client.live(lab).then(
      () => true,
      () => false
    );
  }

  private async _look(lab: string): Promise<void> {
    const started = performance.now();
    const live = await this.client.live(lab);
    if (lab !== this._lab) {
      return;
    }
    if (live.version !== this._version || this._error !== null) {
      await this._read();
      this._error = null;
      this._changed.emit();
    } else if (JSON.stringify(live.running) !== JSON.stringify(this._running)) {
      this._running = live.running;
      this._changed.emit();
    }
    const took = performance.now() - started;
    this._setInterval(nextWait(this._settings.refreshInterval * 1000, took, this._took));
    this._took = took;
  }

  private async _read(): Promise<void> {
    const lab = this._lab;
    if (lab === null) {
      return;
    }
    const overview = await this.client.lab(lab);
    if (lab === this._lab) {
      this._overview = overview;
      this._running = overview.running;
      this._version = overview.version;
    }
  }

  private _waitUsual(): void {
    this._setInterval(this._settings.refreshInterval * 1000);
  }

  private _setInterval(interval: number): void {
    if (interval !== this._poll.frequency.interval) {
      this._poll.frequency = { ...this._poll.frequency, interval };
    }
  }

  private async _guard(work: () => Promise<void>): Promise<void> {
    this._pending++;
    this._changed.emit();
    try {
      await work();
      this._error = null;
    } catch (error) {
      this._error = error;
    } finally {
      this._pending--;
      this._changed.emit();
    }
  }

  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _settings = DEFAULTS;
  private _active = false;
  private _pending = 0;
  /** How long the last look took, in milliseconds; 0 before the first. */
  private _took = 0;
  private _labs: Labs | null = null;
  private _lab: string | null = null;
  private _overview: Overview | null = null;
  private _running: Live['running'] = null;
  private _version = '';
  private _error: unknown = null;
}
