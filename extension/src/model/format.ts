import type { RefRow } from '../api';

/** How the user wants dates: as a distance from now, as the browser's locale writes them, or ISO 8601. */
export type DateFormat = 'relative' | 'locale' | 'iso';

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1]
];

/** An ISO time stamp in the wanted format (`short`: a distance in few letters, for narrow places); text that is no date comes back as it is. */
export function formatDate(
  stamp: string,
  format: DateFormat | 'short',
  now: number = Date.now(),
  locale?: string
): string {
  const time = Date.parse(stamp);
  if (Number.isNaN(time)) {
    return stamp;
  }
  if (format === 'iso') {
    return new Date(time).toISOString().slice(0, 19) + 'Z';
  }
  if (format === 'locale') {
    return new Date(time).toLocaleString(locale);
  }
  const seconds = (time - now) / 1000;
  const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1];
  return new Intl.RelativeTimeFormat(locale, {
    numeric: 'auto',
    style: format === 'short' ? 'short' : 'long'
  }).format(Math.round(seconds / size), unit);
}

/** `+3`, `-1`, `0` with a real minus sign, or an en dash where nothing was measured. */
export function formatDelta(delta: number | null): string {
  if (delta === null) {
    return '–';
  }
  return delta > 0 ? `+${delta}` : delta < 0 ? `−${-delta}` : '0';
}

/**
 * A number as a person writes it: four significant digits, whole numbers whole, a real minus sign and the sign for
 * infinity; `–` where there is none. The server sends `Infinity` and Python's `inf` as text, since JSON has neither.
 */
export function formatNumber(value: number | string | null): string {
  const number = value === null ? NaN : Number(String(value).replace(/inf$/i, 'Infinity'));
  if (Number.isNaN(number)) {
    return value === null || value === 'NaN' ? '–' : String(value);
  }
  const size = Math.abs(number);
  const digits =
    size === Infinity ? '∞' : String(size < 1000 ? Number(size.toPrecision(4)) : Math.round(size));
  return number < 0 ? `−${digits}` : digits;
}

/**
 * The path of a lab for a narrow list: a long one loses its first folders.
 *
 * @param others the paths beside it; where a shorter form could mean one of them, it stays whole.
 */
export function shortPath(path: string, others: readonly string[], longest = 26): string {
  const parts = path.split('/');
  for (let from = 0; from < parts.length; from++) {
    const tail = parts.slice(from).join('/');
    const last = from === parts.length - 1;
    if (tail.length <= longest || last) {
      const clash = others.some(other => other !== path && other.endsWith(`/${tail}`));
      return from === 0 || clash ? path : `…/${tail}`;
    }
  }
  return path;
}

/** The last part of a ref, or the first ten digits of a commit. */
export function shortRef(ref: string): string {
  return /^[0-9a-f]{40,64}$/.test(ref) ? ref.slice(0, 10) : ref.replace(/^refs\/(heads\/)?/, '');
}

/** The name that a row goes by: its own, else its id. */
export function rowName(row: Pick<RefRow, 'name' | 'id'>): string {
  return row.name || row.id;
}

/** Points of a polyline in a box of `width` by `height`, oldest first; missing values are left out. */
export function sparkline(
  values: readonly (number | null)[],
  width: number,
  height: number
): string {
  const known = values.flatMap((value, index) => (value === null ? [] : [{ value, index }]));
  if (known.length < 2) {
    return '';
  }
  const low = Math.min(...known.map(point => point.value));
  const high = Math.max(...known.map(point => point.value));
  const xs = (index: number) => (index / (values.length - 1)) * width;
  const ys = (value: number) =>
    high === low ? height / 2 : height - ((value - low) / (high - low)) * height;
  return known.map(point => `${round(xs(point.index))},${round(ys(point.value))}`).join(' ');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
