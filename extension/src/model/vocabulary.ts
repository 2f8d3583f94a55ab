import type { TranslationBundle } from '@jupyterlab/translation';

import type { ActionName, RefQuery, RefRow } from '../api';

/** What an act is called: on a button of a candidate, and as the title of its dialog. */
export interface IActWords {
  readonly button: string;
  readonly title: string;
}

/** The words for every act, in the order in which menus list them. A new act is added here. */
export function actWords(trans: TranslationBundle): Record<ActionName, IActWords> {
  return {
    promote: { button: trans.__('Promote…'), title: trans.__('Promote Candidate') },
    reject: { button: trans.__('Reject…'), title: trans.__('Reject Candidate') },
    shelve: { button: trans.__('Shelve…'), title: trans.__('Shelve Candidate') },
    override: {
      button: trans.__('Override the verdict…'),
      title: trans.__('Override the Verdict')
    },
    undo: { button: trans.__('Undo…'), title: trans.__('Undo') },
    retry: { button: trans.__('Retry on today’s baseline…'), title: trans.__('Retry Candidate') },
    rollback: { button: trans.__('Roll back to this…'), title: trans.__('Roll Back Baseline') }
  };
}

/** What a state is called, and whether a candidate in it waits for a decision. */
export interface IStateWords {
  readonly label: string;
  readonly waits: boolean;
}

/** The words for every state. A new state is added here. */
export function stateWords(trans: TranslationBundle): Record<RefRow['state'], IStateWords> {
  return {
    pending: { label: trans.__('Pending'), waits: true },
    measured: { label: trans.__('Measured'), waits: true },
    undecided: { label: trans.__('Undecided'), waits: true },
    rejected: { label: trans.__('Rejected'), waits: false },
    promoted: { label: trans.__('Promoted'), waits: false },
    commit: { label: trans.__('Commit'), waits: false }
  };
}

/** The tabs of the list of candidates, in order; those that wait for a decision share the first. */
export const TABS: readonly RefQuery['state'][] = ['pending', 'rejected', 'promoted'];
