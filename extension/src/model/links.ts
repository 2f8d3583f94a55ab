/** What a ref view shows: one candidate against its parent, or any two refs. */
export type Target =
  | { readonly lab: string; readonly ref: string }
  | { readonly lab: string; readonly base: string; readonly head: string };

const PREFIX = 'harnesslab-';
const KEYS = ['lab', 'ref', 'base', 'head'] as const;

/** The parameters that open a target, to be put behind a JupyterLab address. */
export function targetQuery(target: Target): string {
  const query = new URLSearchParams();
  for (const key of KEYS) {
    const value = (target as Record<string, string | undefined>)[key];
    if (value !== undefined) {
      query.set(PREFIX + key, value);
    }
  }
  return query.toString();
}

/** The target that an address asks for, or null. */
export function parseTarget(search: string): Target | null {
  const query = new URLSearchParams(search);
  const [lab, ref, base, head] = KEYS.map(key => query.get(PREFIX + key));
  if (!lab) {
    return null;
  }
  if (base && head) {
    return { lab, base, head };
  }
  return ref ? { lab, ref } : null;
}

/** The search part of an address without our parameters. */
export function withoutTarget(search: string): string {
  const query = new URLSearchParams(search);
  KEYS.forEach(key => query.delete(PREFIX + key));
  const rest = query.toString();
  return rest ? `?${rest}` : '';
}

/** One name for one target, for the layout restorer and for finding an open tab. */
export function targetKey(target: Target): string {
  return 'ref' in target
    ? `${target.lab}:${target.ref}`
    : `${target.lab}:${target.base}...${target.head}`;
}
