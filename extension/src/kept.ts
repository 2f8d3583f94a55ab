import type { IStateDB } from '@jupyterlab/statedb';

import type { Session } from './model/session';

const KEY = 'harnesslab:lab';

/** The lab that was shown when this workspace was left, or null. */
export async function rememberedLab(state: IStateDB | null): Promise<string | null> {
  const kept = await state?.fetch(KEY);
  return typeof kept === 'string' ? kept : null;
}

/** Keep in the workspace which lab is shown. */
export function keepLab(session: Session, state: IStateDB | null): void {
  let kept: string | null = null;
  session.changed.connect(() => {
    if (session.lab !== null && session.lab !== kept) {
      kept = session.lab;
      void state?.save(KEY, kept);
    }
  });
}
