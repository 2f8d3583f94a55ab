/** One page of a longer list. */
export interface IPage<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/**
 * A long list of which only the pages in view are fetched.
 *
 * Pages that are asked for twice are fetched once. After `invalidate` the old rows stay readable until
 * their replacements arrive, so that a list does not flicker while a run goes on. Answers that come
 * after a newer `invalidate` or `clear` are dropped.
 */
export class PagedList<T> {
  constructor(
    private readonly _fetch: (offset: number, limit: number) => Promise<IPage<T>>,
    private readonly _changed: () => void,
    private readonly _failed: (error: unknown) => void,
    readonly pageSize = 50,
    private readonly _keep = 40
  ) {}

  /** How many rows there are; null before the first page has come. */
  get total(): number | null {
    return this._total;
  }

  /** The row at an index, or undefined while its page is not here. */
  row(index: number): T | undefined {
    return this._pages.get(Math.floor(index / this.pageSize))?.[index % this.pageSize];
  }

  /** Ask for the pages that cover rows `first` to `last`. */
  want(first: number, last: number): void {
    const from = Math.max(0, Math.floor(first / this.pageSize));
    const to = Math.max(from, Math.floor(last / this.pageSize));
    for (let page = from; page <= to; page++) {
      if (!this._fresh.has(page)) {
        void this._load(page);
      }
    }
    this._forgetFarFrom(from, to);
  }

  /** Rows may have changed: fetch again what is wanted next. */
  invalidate(): void {
    this._generation++;
    this._fresh.clear();
  }

  /** Another list altogether: forget every row. */
  clear(): void {
    this.invalidate();
    this._pages.clear();
    this._total = null;
  }

  private async _load(page: number): Promise<void> {
    const generation = this._generation;
    this._fresh.add(page);
    try {
      const answer = await this._fetch(page * this.pageSize, this.pageSize);
      if (generation !== this._generation) {
        return;
      }
      this._pages.set(page, answer.items);
      this._total = answer.total;
      this._changed();
    } catch (error) {
      if (generation === this._generation) {
        // It stays marked as asked for: an error must not turn into a storm of requests.
        this._failed(error);
      }
    }
  }

  private _forgetFarFrom(from: number, to: number): void {
    if (this._pages.size <= this._keep) {
      return;
    }
    for (const page of this._pages.keys()) {
      if (page < from - this._keep / 2 || page > to + this._keep / 2) {
        this._pages.delete(page);
        this._fresh.delete(page);
      }
    }
  }

  private _pages = new Map<number, readonly T[]>();
  private _fresh = new Set<number>();
  private _generation = 0;
  private _total: number | null = null;
}
