import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import type { Client, Labs, Live, Overview } from '../api';
import { DEFAULTS, ISettings } from './settings';

/** The poll may take at most this share of the time, however slow the server is. */
const DUTY = 0.25;
const SLOWEST_MS = 30_000;

/**
 * What the sidebar knows: the labs that were found, the chosen one, and its state.
 *
 * It asks `GET /live` while it is active (the sidebar is visible and so is the page) and reads the rest again only when the
 * change token differs. Failures back off; a slow server is asked less often.
 */
export class Session {
  constructor(readonly client: Client) {
    this._poll = new Poll({
      auto: false,
      name: 'harnesslab:live',
      frequency: { interval: DEFAULTS.refreshInterval * 1000, backoff: 2, max: 60_000 },
      standby: () => (this._active && this._lab !== null ? 'when-hidden' : true),
      factory: () => this._look()
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
    this._setInterval(settings.refreshInterval * 1000);
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
      void this.findLabs().then(() => this._poll.start());
    } else {
      void this.refresh();
    }
  }

  /** Search for labs, and choose one where none is chosen. */
  async findLabs(): Promise<void> {
    await this._guard(async () => {
      this._labs = await this.client.labs(this._settings.roots, this._settings.searchDepth);
    });
    const usable = this._labs?.items.find(item => item.problem === null);
    if (this._lab === null && usable) {
      await this.choose(usable.path);
    }
  }

  /** Show another lab. */
  async choose(lab: string): Promise<void> {
    if (lab !== this._lab) {
      this._lab = lab;
      this._overview = null;
      this._running = null;
      this._version = '';
    }
    await this.refresh();
  }

  /** Read the chosen lab again, now. */
  async refresh(): Promise<void> {
    if (this._lab !== null) {
      await this._guard(() => this._read());
    }
    if (this._active) {
      await this._poll.start();
    }
  }

  private async _look(): Promise<void> {
    const lab = this._lab;
    if (lab === null) {
      return;
    }
    const started = performance.now();
    try {
      const live = await this.client.live(lab);
      if (lab !== this._lab) {
        return;
      }
      if (live.version !== this._version || this._error !== null) {
        await this._guard(() => this._read());
      } else if (JSON.stringify(live.running) !== JSON.stringify(this._running)) {
        this._running = live.running;
        this._changed.emit();
      }
    } catch (error) {
      this._error = error;
      this._changed.emit();
      throw error; // lets the poll back off
    }
    this._setInterval(
      Math.min(
        SLOWEST_MS,
        Math.max(this._settings.refreshInterval * 1000, (performance.now() - started) / DUTY)
      )
    );
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
  private _labs: Labs | null = null;
  private _lab: string | null = null;
  private _overview: Overview | null = null;
  private _running: Live['running'] = null;
  private _version = '';
  private _error: unknown = null;
}
