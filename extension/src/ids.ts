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
  undo: 'harnesslab:undo',
  promote: 'harnesslab:promote',
  reject: 'harnesslab:reject',
  shelve: 'harnesslab:shelve',
  override: 'harnesslab:override',
  rollback: 'harnesslab:rollback',
  retry: 'harnesslab:retry',
  copyCell: 'harnesslab:copy-cell',
  export: 'harnesslab:export',
  route: 'harnesslab:route'
} as const;
