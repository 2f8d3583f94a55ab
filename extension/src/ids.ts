import type { ActionName } from './api';

/** Names that other code, settings and tests refer to. */
export const PLUGIN_ID = 'harnesslab-labextension:plugin';
export const NAMESPACE = 'harnesslab-refs';

export const CommandIDs = {
  show: 'harnesslab:show',
  refresh: 'harnesslab:refresh',
  chooseLab: 'harnesslab:choose-lab',
  openRef: 'harnesslab:open-ref',
  compare: 'harnesslab:compare',
  compareBaseline: 'harnesslab:compare-baseline',
  openFolder: 'harnesslab:open-folder',
  copyCell: 'harnesslab:copy-cell',
  export: 'harnesslab:export',
  route: 'harnesslab:route'
} as const;

/** The command of an act, such as `harnesslab:promote`. */
export function actCommand(act: ActionName): string {
  return `harnesslab:${act}`;
}
